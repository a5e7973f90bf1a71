"""The admit script through HTTP against the same script without: same Redis, same client of it, as many in flight."""

import statistics
import subprocess
import sys

from holdfast.catalogue import builtin
from holdfast.deployment import Wanted
from holdfast.stream import Stream
from holdfast.target import builtin_path, load
from holdfast.wiring import Engine, EngineOptions

IN_FLIGHT = 32
ROUNDS = 5
ATTEMPTS = 3000


def median_ratio() -> tuple[float, list[tuple[float, float]]]:
    """The median, and the rates of each round, through HTTP and without, taken in turn: a machine has its moods."""
    target = load(builtin_path("admission")).at_scale(1)
    engine = Engine(target, Stream(None), EngineOptions())
    try:
        engine.open()
        wanted = Wanted("quiet", frozenset(), {}, nodes=1)
        deployment = engine.lease(wanted, target, target.timings(builtin(target.spec)))
        assert deployment.store is not None
        (node,) = deployment.nodes.values()
        words = [deployment.store.url, node.urls["http"], str(target.credentials["auth_secret"])]
        rounds = [(_rate("http", words), _rate("direct", words)) for _ in range(ROUNDS)]
    finally:
        engine.close()
    return statistics.median(http / direct for http, direct in rounds), rounds


def _rate(way: str, words: list[str]) -> float:
    """The client is a process of its own: in the node's, it would take the node's time."""
    program = [sys.executable, "-m", "tests.bench.client", way, *words, str(ATTEMPTS), str(IN_FLIGHT)]
    return float(subprocess.run(program, stdout=subprocess.PIPE, text=True, check=True).stdout)
