"""States that differ only in when something happened, made one with the widest intervals."""

from collections.abc import Hashable, Iterable
from dataclasses import replace

from holdfast.conformance.intents.walks.state import BEFORE, Session, State
from holdfast.conformance.shared import walks as shared
from holdfast.conformance.shared.walks import Span, both


def merged(states: Iterable[State]) -> list[State]:
    return shared.merged(states, _shape, _widest)


def _shape(state: State) -> Hashable:
    """Everything about a state but when it came to be so."""
    return replace(state, sessions=tuple(map(_timeless, state.sessions)))


def _timeless(session: Session) -> Session:
    unkept, lapsed = session.unkept and BEFORE, session.lapsed and BEFORE
    return replace(
        session,
        since=BEFORE,
        unkept=unkept,
        lapsed=lapsed,
        due=session.due and BEFORE,
        picked=session.picked and BEFORE,
    )


def _widest(one: State, other: State) -> State:
    return replace(one, sessions=tuple(map(_wider, one.sessions, other.sessions)))


def _wider(one: Session, other: Session) -> Session:
    return replace(
        one,
        since=both(one.since, other.since),
        unkept=_either(one.unkept, other.unkept),
        lapsed=_either(one.lapsed, other.lapsed),
        due=_either(one.due, other.due),
        picked=_either(one.picked, other.picked),
    )


def _either(one: Span | None, other: Span | None) -> Span | None:
    return both(one, other) if one and other else None
