"""States that differ only in when something happened, made one with the widest intervals: it allows no less."""

from collections.abc import Hashable, Iterable
from dataclasses import replace

from holdfast.conformance.lockd.walks.state import BEFORE, Slot, State
from holdfast.conformance.shared import walks as shared
from holdfast.conformance.shared.walks import both


def merged(states: Iterable[State]) -> list[State]:
    return shared.merged(states, _shape, _widest)


def _shape(state: State) -> Hashable:
    """Everything about a state but when it came to be so."""
    return replace(
        state,
        members=tuple((who, member._replace(since=BEFORE)) for who, member in state.members),
        slot=state.slot and state.slot._replace(since=BEFORE, led=float(bool(state.slot.led))),
        report=state.report and state.report._replace(since=BEFORE),
        free=BEFORE,
        settles=0.0,
        listed_by=0.0,
        blocked=(0, 0.0),
    )


def _widest(one: State, other: State) -> State:
    return replace(
        one,
        members=tuple(
            (who, mine._replace(since=both(mine.since, its.since)))
            for (who, mine), (_, its) in zip(one.members, other.members, strict=True)
        ),
        slot=_slot(one.slot, other.slot),
        report=one.report and other.report and one.report._replace(since=both(one.report.since, other.report.since)),
        free=both(one.free, other.free),
        settles=max(one.settles, other.settles),
        listed_by=max(one.listed_by, other.listed_by),
        blocked=min(one.blocked, other.blocked),
    )


def _slot(one: Slot | None, other: Slot | None) -> Slot | None:
    if one is None or other is None:
        return None
    return one._replace(since=both(one.since, other.since), led=max(one.led, other.led))
