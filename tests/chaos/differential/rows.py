"""A row of the behaviour table returns words and numbers, which must be equal, and seconds (floats), which must be as
near as timers are.
"""

from collections.abc import Callable, Coroutine
from typing import Any

from tests.chaos.differential.stand import Stand

Seen = dict[str, Any]
Row = Callable[[Stand], Coroutine[Any, Any, Seen]]
ROWS: dict[str, Row] = {}


def row(function: Row) -> Row:
    ROWS[function.__name__] = function
    return function
