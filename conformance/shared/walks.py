"""What the models of walks share: intervals, small demands, and states that differ only in when something happened."""

from collections.abc import Callable, Hashable, Iterable
from typing import NamedTuple, TypeVar

from holdfast.check.walk.vocabulary import Rule, Seen

S = TypeVar("S")
V = TypeVar("V")


class Span(NamedTuple):
    """When something happened, on our clock: not before `lo`, not after `hi`."""

    lo: float
    hi: float

    def later(self, by: float) -> "Span":
        return Span(self.lo, self.hi + by)


def span_of(seen: Seen) -> Span:
    return Span(seen.sent, seen.received)


def both(one: Span, other: Span) -> Span:
    """Returns the narrowest interval that holds both."""
    return Span(min(one.lo, other.lo), max(one.hi, other.hi))


def rule(expected: str, held: object, *rows: str) -> Rule:
    return Rule(rows, expected, bool(held))


def in_time(expected: str, held: object, *rows: str) -> Rule:
    """A demand that a target can't meet which was kept from running, such as to renew its own lease."""
    return Rule(rows, expected, bool(held), late=True)


def with_entry(table: tuple[tuple[str, V], ...], name: str, value: V | None) -> tuple[tuple[str, V], ...]:
    """Returns the table with this value under the name; without the name if there is no value."""
    others = [each for each in table if each[0] != name]
    return tuple(sorted([*others, *([(name, value)] if value is not None else [])], key=lambda each: each[0]))


def merged(states: Iterable[S], shape: Callable[[S], Hashable], widest: Callable[[S, S], S]) -> list[S]:
    """Returns one state for all of one shape, made by `widest`: it allows a little more than each, never less.

    A deadline that passes while we look at one thing after the other leaves a state for each moment at which it may
    have passed. They say the same about the target but for their intervals.
    """
    found: dict[Hashable, S] = {}
    for state in states:
        key = shape(state)
        found[key] = widest(found[key], state) if key in found else state
    return list(found.values())
