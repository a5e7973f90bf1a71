"""Work through HTTP, compared with the same script called directly: same Redis, same link, as many in flight.

Here it is admissions; `tests.bench.intents` does the same with intents.
"""

import statistics
import subprocess
import sys
from dataclasses import dataclass

from holdfast.run.harness import Harness
from holdfast.run.stream import Stream
from holdfast.spec.catalogue import builtin
from holdfast.target.deployment import Wanted
from holdfast.target.descriptor import builtin_path, load


@dataclass(frozen=True)
class Bench:
    """What is measured: a spec, the client, and the credential that it is given."""

    key: str
    client: str
    credential: str
    role: str = ""
    attempts: int = 3000
    in_flight: int = 32
    rounds: int = 5


ADMIT = Bench("admission", "tests.bench.client", "auth_secret")
IN_FLIGHT = ADMIT.in_flight


def median_ratio() -> tuple[float, list[tuple[float, float]]]:
    """Returns the median ratio of admissions and the rates of each round."""
    return median_ratio_of(ADMIT)


def median_ratio_of(bench: Bench) -> tuple[float, list[tuple[float, float]]]:
    """Returns the median ratio and the rates of each round, measured in turn because the machine's load changes."""
    target = load(builtin_path(bench.key)).at_scale(1)
    harness = Harness(target, Stream())
    try:
        harness.open()
        nodes = {role: int(role == bench.role) for role in target.roles} if bench.role else 1
        wanted = Wanted("quiet", frozenset(), {}, nodes=nodes)
        deployment = harness.lease(wanted, target, target.timings(builtin(target.spec)))
        assert deployment.store is not None
        (node,) = deployment.nodes.values()
        words = [deployment.store.url, node.urls["http"], str(target.credentials[bench.credential])]
        rounds = [(_rate(bench, "http", words), _rate(bench, "direct", words)) for _ in range(bench.rounds)]
    finally:
        harness.close()
    return statistics.median(http / direct for http, direct in rounds), rounds


def _rate(bench: Bench, mode: str, words: list[str]) -> float:
    """Returns how many a second, measured by a client in its own process, so that it takes no time from the node."""
    program = [sys.executable, "-m", bench.client, mode, *words, str(bench.attempts), str(bench.in_flight)]
    return float(subprocess.run(program, stdout=subprocess.PIPE, text=True, check=True).stdout)
