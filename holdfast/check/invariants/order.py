"""Rules over numbers: tokens that only rise, and terms that each belong to one leader.

Only operations that were answered with ok are judged: one of unknown outcome may never have happened.
"""

import math
from typing import Literal

from holdfast.check.history import History, HistoryError, Operation, Value
from holdfast.check.invariants.result import DEFAULT_LIMIT, Contradiction, Limit, Result, certain, contradiction, judge

Where = Literal["value", "argument"]


def one_leader_per_term(history: History, *, lead: str = "lead", limit: Limit = DEFAULT_LIMIT) -> Result:
    """No two leaders are seen in one term. The answer is the term, the argument (or the client) the leader. O(n)."""

    def rule(key: str, operations: list[Operation]) -> Contradiction | None:
        first: dict[Value, Operation] = {}
        for seen in certain(operations, lead):
            other = first.setdefault(seen.value, seen)
            if _leader(other) != _leader(seen):
                place = f" of {key}" if key else ""
                words = f"both {_leader(other)} and {_leader(seen)} led in term {seen.value}{place}"
                return contradiction(words, [other, seen])
        return None

    return judge("one leader per term", history, (lead,), rule, limit)


def _leader(seen: Operation) -> Value:
    return seen.client if seen.argument is None else seen.argument


def monotonic_tokens(
    history: History,
    *,
    grant: str = "acquire",
    where: Where = "value",
    repeats: bool = False,
    limit: Limit = DEFAULT_LIMIT,
) -> Result:
    """A grant that was asked for after another had been answered carries a greater token; no token is given twice.

    For fencing, look at the accepted writes: the token is what they named (`where="argument"`), and one token may write
    repeatedly (`repeats`), but not after a greater one had been accepted. Sorting by token gives an order that explains
    the history, unless some pair is sure to have been the other way round; so looking for such a pair is exact.
    O(n log n).
    """

    def rule(key: str, operations: list[Operation]) -> Contradiction | None:
        tokens = [(_number(operation, where), operation) for operation in certain(operations, grant)]
        return (None if repeats else _twice(key, tokens)) or _falling(key, tokens)

    return judge("monotonic tokens", history, (grant,), rule, limit)


def _number(operation: Operation, where: Where) -> float:
    number = operation.value if where == "value" else operation.argument
    if not isinstance(number, int | float):
        raise HistoryError(f"{operation.describe()}: its {where} {number!r} is not a number, so it can't be a token")
    return number


def _twice(key: str, tokens: list[tuple[float, Operation]]) -> Contradiction | None:
    first: dict[float, Operation] = {}
    for number, operation in tokens:
        if (other := first.setdefault(number, operation)) is not operation:
            return contradiction(f"{_of(key)}token {number} was given twice", [other, operation])
    return None


def _falling(key: str, tokens: list[tuple[float, Operation]]) -> Contradiction | None:
    """Compares each token with the greatest that had surely been accepted before its operation was invoked."""
    by_answer = sorted(tokens, key=lambda pair: pair[1].completed)
    greatest, at = (-math.inf, by_answer[0][1]) if by_answer else None, 0
    for number, operation in tokens:  # in the order of their invocation
        while greatest and by_answer[at][1].before(operation):
            greatest = max(greatest, by_answer[at], key=lambda pair: pair[0])
            at += 1
        if greatest and greatest[0] > number:
            words = f"{_of(key)}token {number} came after {greatest[0]} had been accepted"
            return contradiction(words, [greatest[1], operation])
    return None


def _of(key: str) -> str:
    return f"{key}: " if key else ""
