"""Intents through HTTP, compared with the same script called directly: same Redis, same link, as many in flight.

Each start asks for a recording of its own, so each is a new session. The worker is not there: what is measured is how
fast intents are taken, and a worker on the same machine would take its time from both.
"""

from tests.bench.admit import Bench, median_ratio_of

BENCH = Bench("intents", "tests.bench.intents_client", "write", role="api", attempts=6000)
IN_FLIGHT = BENCH.in_flight


def median_ratio() -> tuple[float, list[tuple[float, float]]]:
    """Returns the median ratio and the rates of each round."""
    return median_ratio_of(BENCH)
