"""A linearizable register whose writes all write different values: decided by sorting, without a search.

In every order that a register can have shown, a write and the reads of its value are neighbours: no other write comes
between them. So values can be compared as a whole: one comes before another if some operation of it was answered before
some operation of the other was invoked. The history is possible unless two values come before each other (Gibbons and
Korach, 1997).

The *zone* of a value reaches from its first answer to its last invocation. Where the first answer comes before the last
invocation, the register surely had the value in between, and no two such zones may overlap. A value whose operations
all overlap has a zone the other way round; it fits anywhere in it, unless a sure zone covers it entirely.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from holdfast.check.history import History, Operation, Value
from holdfast.check.invariants.linear import Register, linearizable
from holdfast.check.invariants.result import (
    DEFAULT_LIMIT,
    Contradiction,
    Limit,
    Result,
    certain,
    contradiction,
    judge,
    possible,
)


@dataclass(slots=True, eq=False)
class Reign:
    """One value: its write (None for the value at the start) and the reads that saw it."""

    value: Value
    write: Operation | None
    reads: list[Operation] = field(default_factory=list)

    @property
    def operations(self) -> list[Operation]:
        return [*self.reads, self.write] if self.write else self.reads

    @property
    def known(self) -> bool:
        """Whether it surely was the value at some time: it was read, or its write was answered with ok."""
        return bool(self.reads) or (self.write is not None and self.write.ok)

    def zone(self) -> "_Zone":
        first = min((one.completed for one in self.operations), default=0.0) if self.write else float("-inf")
        return _Zone(first, max(one.invoked for one in self.operations), self)

    def evidence(self) -> Iterable[Operation]:
        first = min(self.operations, key=lambda one: one.completed)
        last = max(self.operations, key=lambda one: one.invoked)
        return dict.fromkeys([*([self.write] if self.write else []), first, last])


@dataclass(slots=True, eq=False)
class _Zone:
    """The `first` answer and `last` invocation of a value. Where first < last, it surely was the value in between."""

    first: float
    last: float
    reign: Reign


def atomic_register(history: History, *, start: Value = None, limit: Limit = DEFAULT_LIMIT) -> Result:
    """`write` sets its argument, and `read` answers with the last value written, or with `start`. O(n log n).

    If a value is written twice, this falls back to the search of `linearizable`, with its limits.
    """
    if any(_repeats(operations, start) for operations in history.by_key.values()):
        return linearizable(history, Register(start), limit=limit)

    def rule(key: str, operations: list[Operation]) -> Contradiction | None:
        return _contradiction(f"{key}: " if key else "", operations, start)

    return judge("a linearizable register", history, Register.operations, rule, limit)


def _repeats(operations: Iterable[Operation], start: Value) -> bool:
    written = [write.argument for write in possible(operations, "write")]
    return len({*written, start}) <= len(written)


def _contradiction(place: str, operations: list[Operation], start: Value) -> Contradiction | None:
    reigns = {write.argument: Reign(write.argument, write) for write in possible(operations, "write")}
    reigns[start] = Reign(start, None)
    for read in certain(operations, "read"):
        if read.value not in reigns:
            return contradiction(f"{place}{read.value} was read although nobody had written it", [read])
        reigns[read.value].reads.append(read)
    return _too_early(place, reigns) or _both_ways(place, reigns)


def _too_early(place: str, reigns: Mapping[Value, Reign]) -> Contradiction | None:
    for reign in reigns.values():
        for read in reign.reads:
            if reign.write and read.before(reign.write):
                return contradiction(f"{place}{reign.value} was read before it was written", [read, reign.write])
    return None


def _both_ways(place: str, reigns: Mapping[Value, Reign]) -> Contradiction | None:
    zones = [reign.zone() for reign in reigns.values() if reign.known]
    sure = sorted((zone for zone in zones if zone.first < zone.last), key=lambda zone: zone.first)
    for one, other in pairwise(sure):
        if other.first < one.last:
            return _clash(place, one, other)
    firsts = [
        zone.first for zone in sure
    ]  # they do not overlap, so only the last that began before a zone can cover it
    for zone in zones:
        at = bisect_left(firsts, zone.last) - 1
        if zone.first >= zone.last and at >= 0 and zone.first < sure[at].last:
            return _clash(place, sure[at], zone)
    return None


def _clash(place: str, one: _Zone, other: _Zone) -> Contradiction:
    words = f"{place}{one.reign.value} was the value both before and after {other.reign.value}, which was written once"
    return contradiction(words, [*one.reign.evidence(), *other.reign.evidence()])
