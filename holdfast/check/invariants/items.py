"""What became of each item: it took effect exactly once, or at least it was found again.

Both rules group operations by the item that they name. An operation of unknown outcome may have happened or not,
whichever excuses the service; one that names no item may have been about any one item, but only about one, so each can
explain one missing item. That is why `_missing` compares numbers and does not ask which is which.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from holdfast.check.history import History, Operation, Outcome, Value
from holdfast.check.invariants.result import (
    DEFAULT_LIMIT,
    Contradiction,
    Limit,
    Result,
    contradiction,
    judge,
)

Groups = dict[Value, list[Operation]]


def exactly_once(
    history: History, *, submit: str = "submit", effect: str = "effect", limit: Limit = DEFAULT_LIMIT
) -> Result:
    """Each accepted item takes effect, none twice, and none that was refused or not yet submitted.

    A submission of unknown outcome may have been accepted or not; an effect of unknown outcome may be there or not, and
    one that names no item may belong to any one item. Submissions of one item are attempts at the same thing. O(n).
    """

    def rule(key: str, operations: list[Operation]) -> Contradiction | None:
        submitted, _ = _by_item(operations, [submit])
        effected, anonymous = _by_item(operations, [effect])
        return (
            _effected_twice(key, effected)
            or _without_cause(key, submitted, effected)
            or _missing(f"{_of(key)}accepted without ever taking effect", submitted, effected, anonymous)
        )

    return judge("exactly once", history, (submit, effect), rule, limit)


def nothing_lost(
    history: History, *, put: str = "put", found: Sequence[str] = ("found",), limit: Limit = DEFAULT_LIMIT
) -> Result:
    """Each acknowledged item is found again by one of the operations `found`: seen at the end, served, left, …

    What was found before the item was put is not this item. O(n).
    """

    def rule(key: str, operations: list[Operation]) -> Contradiction | None:
        acknowledged, _ = _by_item(operations, [put])
        accounts, anonymous = _by_item(operations, found)
        in_time = {
            item: [seen for seen in accounts[item] if not _premature(seen, acknowledged[item])]
            for item in accounts.keys() & acknowledged.keys()
        }
        return _missing(f"{_of(key)}acknowledged and gone", acknowledged, in_time, anonymous)

    return judge("nothing lost", history, (put, *found), rule, limit)


def _by_item(operations: Sequence[Operation], names: Sequence[str]) -> tuple[Groups, list[Operation]]:
    """Returns the operations by the item they name, refused ones too, and those of unknown outcome that name none."""
    groups: Groups = defaultdict(list)
    anonymous: list[Operation] = []
    for operation in operations:
        if operation.what not in names:
            continue
        if operation.subject is not None:
            groups[operation.subject].append(operation)
        elif operation.outcome is Outcome.UNKNOWN:
            anonymous.append(operation)
    return dict(groups), anonymous


def _effected_twice(key: str, effected: Groups) -> Contradiction | None:
    for item, operations in effected.items():
        if len(sure := [operation for operation in operations if operation.ok]) > 1:
            return contradiction(f"{_of(key)}{item} took effect twice", sure[:2])
    return None


def _without_cause(key: str, submitted: Groups, effected: Groups) -> Contradiction | None:
    for item, effect in _sure(effected):
        attempts = submitted.get(item, [])
        causes = [attempt for attempt in attempts if attempt.possible]
        if not attempts:
            return contradiction(f"{_of(key)}{item} took effect though nobody submitted it", [effect])
        if not causes:
            return contradiction(f"{_of(key)}{item} took effect though it was refused", [*attempts, effect])
        if _premature(effect, causes):
            return contradiction(f"{_of(key)}{item} took effect before it was submitted", [effect, *causes[:1]])
    return None


def _sure(groups: Groups) -> Iterator[tuple[Value, Operation]]:
    return ((item, operation) for item, operations in groups.items() for operation in operations if operation.ok)


def _premature(effect: Operation, attempts: Sequence[Operation]) -> bool:
    """Whether it surely came before each attempt that may have caused it."""
    return all(effect.before(attempt) for attempt in attempts if attempt.possible)


def _missing(words: str, wanted: Groups, there: Groups, anonymous: Sequence[Operation]) -> Contradiction | None:
    """Returns a contradiction if more wanted items are missing than there are anonymous operations to explain them."""
    missing = [
        next(operation for operation in operations if operation.ok)
        for item, operations in wanted.items()
        if any(operation.ok for operation in operations)
        and not any(operation.possible for operation in there.get(item, ()))
    ]
    if len(missing) <= len(anonymous):
        return None
    items = ", ".join(str(operation.subject) for operation in missing[: len(anonymous) + 1])
    return contradiction(f"{words}: {items}", [*missing[: len(anonymous) + 1], *anonymous])


def _of(key: str) -> str:
    return f"{key}: " if key else ""
