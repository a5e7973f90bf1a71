"""Admissions through HTTP, compared with the same script called directly: same Redis, same link, as many in flight."""

import statistics
import subprocess
import sys

from holdfast.run.harness import Harness
from holdfast.run.stream import Stream
from holdfast.spec.catalogue import builtin
from holdfast.target.deployment import Wanted
from holdfast.target.descriptor import builtin_path, load

IN_FLIGHT = 32
ROUNDS = 5
ATTEMPTS = 3000


def median_ratio() -> tuple[float, list[tuple[float, float]]]:
    """Returns the median ratio and the rates of each round, measured in turn because the machine's load changes."""
    target = load(builtin_path("admission")).at_scale(1)
    harness = Harness(target, Stream())
    try:
        harness.open()
        wanted = Wanted("quiet", frozenset(), {}, nodes=1)
        deployment = harness.lease(wanted, target, target.timings(builtin(target.spec)))
        assert deployment.store is not None
        (node,) = deployment.nodes.values()
        words = [deployment.store.url, node.urls["http"], str(target.credentials["auth_secret"])]
        rounds = [(_rate("http", words), _rate("direct", words)) for _ in range(ROUNDS)]
    finally:
        harness.close()
    return statistics.median(http / direct for http, direct in rounds), rounds


def _rate(mode: str, words: list[str]) -> float:
    """Returns admissions a second, measured by a client in its own process, so that it takes no time from the node."""
    program = [sys.executable, "-m", "tests.bench.client", mode, *words, str(ATTEMPTS), str(IN_FLIGHT)]
    return float(subprocess.run(program, stdout=subprocess.PIPE, text=True, check=True).stdout)
