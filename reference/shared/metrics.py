"""What nodes with Prometheus metrics have in common: only the series that the spec names."""

from collections.abc import Callable, Coroutine
from typing import Any

import prometheus_client

Loop = Callable[[Coroutine[Any, Any, bool]], bool]


def without_created(loop: Loop) -> Loop:
    """Returns the loop of a program that leaves out the `…_created` series, which the library adds to each counter."""

    def run(work: Coroutine[Any, Any, bool]) -> bool:
        prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]  # the package has no annotation
        return loop(work)

    return run
