"""States that differ only in when something happened, made one with the widest intervals."""

from collections.abc import Hashable, Iterable
from dataclasses import replace

from holdfast.conformance.admission.walks.state import State
from holdfast.conformance.shared import walks as shared
from holdfast.conformance.shared.walks import Span, both

_NO_TIME = Span(0.0, 0.0)


def merged(states: Iterable[State]) -> list[State]:
    return shared.merged(states, _shape, _widest)


def _shape(state: State) -> Hashable:
    """Everything about a state but when it came to be so."""
    return (
        tuple((who, replace(session, since=_NO_TIME)) for who, session in state.sessions),
        tuple((where, replace(room, since=room.since and _NO_TIME)) for where, room in state.rooms),
        state.suspended,
        state.offers,
        tuple((user, len(failures)) for user, failures in state.failures),
        tuple(user for user, _ in state.locks),
        state.endings,
        tuple((*each[:3], each.due) for each in state.expected),
        state.down,
        state.peak,
    )


def _widest(one: State, other: State) -> State:
    """Two states of one shape as one."""
    return replace(
        one,
        sessions=tuple(
            (who, replace(mine, since=both(mine.since, its.since)))
            for (who, mine), (_, its) in zip(one.sessions, other.sessions, strict=True)
        ),
        rooms=tuple(
            (where, replace(mine, since=both(mine.since, its.since) if mine.since and its.since else None))
            for (where, mine), (_, its) in zip(one.rooms, other.rooms, strict=True)
        ),
        failures=tuple(
            (user, tuple(map(both, mine, its)))
            for (user, mine), (_, its) in zip(one.failures, other.failures, strict=True)
        ),
        locks=tuple((user, both(mine, its)) for (user, mine), (_, its) in zip(one.locks, other.locks, strict=True)),
        expected=tuple(
            mine._replace(latest=max(mine.latest, its.latest))
            for mine, its in zip(one.expected, other.expected, strict=True)
        ),
        uncounted=max(one.uncounted, other.uncounted),
    )
