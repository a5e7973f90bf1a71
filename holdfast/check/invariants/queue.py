"""First in, first out.

Arrivals and services are intervals, so who came first is often open; the rule looks only at what is sure. An item is
reduced to four moments: when its arrival was asked for and surely done, by when it had surely been served, and from
when on it may have been out of the queue. An item that was asked for after another had surely arrived, and that had
surely been served before the other can have been gone, has overtaken it. One sweep over the items in the order of time
finds such a pair.

Items that were never seen to be served need more care. A service that got no answer may have taken any one of them, but
one only, so the overtaken items have to be matched with unanswered services that began in time.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from holdfast.check.history import History, Operation, Value
from holdfast.check.invariants.result import DEFAULT_LIMIT, Contradiction, Limit, Result, contradiction, judge


@dataclass(slots=True, eq=False)
class Item:
    """The operations on one item. An item that arrives again after it was served or left needs another name."""

    arrivals: list[Operation] = field(default_factory=list)
    services: list[Operation] = field(default_factory=list)
    leaves: list[Operation] = field(default_factory=list)

    @property
    def arrived(self) -> tuple[float, float]:
        """When its arrival was asked for, and by when it had surely arrived; a served item has arrived."""
        answered = min(operation.completed for operation in [*self.arrivals, *self.services])
        return min(operation.invoked for operation in self.arrivals), answered

    @property
    def served_by(self) -> float:
        """By when it had surely been served; the first service counts."""
        return min((operation.completed for operation in self.services), default=math.inf)

    @property
    def gone_from(self) -> float:
        """From when on it may have been out of the queue: served, or left; a leave from before it arrived
        does not count, nor does any leave of an item that was served.
        """
        asked, _ = self.arrived
        leaves = [] if self.served else [leave for leave in self.leaves if leave.completed >= asked]
        return min((operation.invoked for operation in [*self.services, *leaves]), default=math.inf)

    @property
    def served(self) -> bool:
        return not math.isinf(self.served_by)

    def operations(self) -> Iterator[Operation]:
        yield from (*self.arrivals[:1], *self.services[:1], *(() if self.served else self.leaves[:1]))


@dataclass(slots=True)
class _Row:
    """The four moments of an item, computed once."""

    name: Value
    item: Item
    asked: float
    arrived: float
    served_by: float
    gone_from: float

    @classmethod
    def of(cls, name: Value, item: Item) -> "_Row":
        return cls(name, item, *item.arrived, item.served_by, item.gone_from)


def fifo(
    history: History,
    *,
    arrive: str = "enqueue",
    serve: str = "serve",
    leave: str = "leave",
    limit: Limit = DEFAULT_LIMIT,
) -> Result:
    """No item is served while one waits that had surely arrived before it; concurrent arrivals may go either way.

    Waiting ends by being served or by leaving. A service that names no item and got no answer may have taken any one;
    one that was answered with nothing found the queue empty and is left out. The order of arrivals and the order of
    services are interval orders; two such orders contradict each other only if some pair of items does, so looking at
    pairs is enough. Items whose arrival is not in the history are not judged. O(n log n).
    """

    def rule(key: str, operations: list[Operation]) -> Contradiction | None:
        items, anonymous = _items(operations, arrive, serve)
        rows = sorted((_Row.of(name, item) for name, item in items.items()), key=lambda row: row.asked)
        return _too_early(rows) or _overtaken(key, rows) or _left_behind(key, rows, anonymous)

    return judge("first in, first out", history, (arrive, serve, leave), rule, limit)


def _items(operations: Iterable[Operation], arrive: str, serve: str) -> tuple[dict[Value, Item], list[Operation]]:
    items: dict[Value, Item] = {}
    anonymous: list[Operation] = []
    for operation in operations:
        if not operation.possible:
            continue
        if operation.subject is None:
            if operation.what == serve and not operation.ok:
                anonymous.append(operation)
            continue
        item = items.setdefault(operation.subject, Item())
        kinds = {arrive: item.arrivals, serve: item.services}
        kinds.get(operation.what, item.leaves).append(operation)
    return {name: item for name, item in items.items() if item.arrivals}, anonymous


def _too_early(rows: Iterable[_Row]) -> Contradiction | None:
    for row in rows:
        if row.served_by < row.asked:
            return contradiction(f"{row.name} was served before it arrived", row.item.operations())
    return None


def _overtaken(key: str, rows: list[_Row]) -> Contradiction | None:
    """Compares each item with the one that waited longest among those that had surely arrived before it."""
    by_arrival = sorted((row for row in rows if row.item.served), key=lambda row: row.arrived)
    longest, at = None, 0
    for row in rows:  # in the order in which they asked
        while at < len(by_arrival) and by_arrival[at].arrived < row.asked:
            if longest is None or by_arrival[at].gone_from > longest.gone_from:
                longest = by_arrival[at]
            at += 1
        if longest and row.served_by < longest.gone_from:
            return _overtaking(key, longest, row)
    return None


def _overtaking(key: str, first: _Row, second: _Row) -> Contradiction:
    place = f" in {key}" if key else ""
    how = "while {} still waited" if math.isinf(first.gone_from) else "before {}"
    words = f"{second.name} was served{place} {how.format(first.name)}, which had arrived earlier"
    return contradiction(words, [*first.item.operations(), *second.item.operations()])


def _left_behind(key: str, rows: list[_Row], anonymous: list[Operation]) -> Contradiction | None:
    """Matches each overtaken item that was not surely served with an anonymous service that began in time."""
    waiting = sorted(_passed(rows), key=lambda pair: (pair[1].served_by, pair[0].asked))
    for number, (first, second) in enumerate(waiting):
        # Both lists are in the order of time: the earliest services go to the items that must have gone earliest.
        if number >= len(anonymous) or anonymous[number].invoked > second.served_by:
            return _overtaking(key, first, second) if number == 0 else _too_few(key, waiting[: number + 1], anonymous)
    return None


def _too_few(key: str, waiting: list[tuple[_Row, _Row]], anonymous: list[Operation]) -> Contradiction:
    unanswered = anonymous[: len(waiting) - 1]
    names = ", ".join(str(first.name) for first, _ in waiting)
    place = f" in {key}" if key else ""
    words = f"{names} were overtaken{place}, and unanswered services can have taken only {len(unanswered)}"
    evidence = dict.fromkeys(one for pair in waiting for row in pair for one in row.item.operations())
    return contradiction(words, [*evidence, *unanswered])


def _passed(rows: list[_Row]) -> Iterator[tuple[_Row, _Row]]:
    """Yields each item that was not surely served and was overtaken, with the first item that overtook it."""
    waiting = sorted((row for row in rows if not row.item.served), key=lambda row: -row.arrived)
    at, earliest = len(rows), None
    for first in waiting:
        while at and rows[at - 1].asked > first.arrived:
            at -= 1
            if earliest is None or rows[at].served_by < earliest.served_by:
                earliest = rows[at]
        if earliest and earliest.served_by < first.gone_from:
            yield first, earliest
