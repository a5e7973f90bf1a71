"""What a target does by itself, and when: leases lapse, pipelines come up, sessions of dead workers are ended.

Names and numbers are the catalogue's. One timer is the model's own: after it a session has run for longer than a lease
lives that nobody renews, so that what is said about it then is about renewal.
"""

import math
from collections.abc import Iterator
from dataclasses import replace

from holdfast.check.walk.vocabulary import Timer
from holdfast.conformance.intents.walks.spans import Spans
from holdfast.conformance.intents.walks.state import GONE, NEW, NOTHING, READY, STARTING, Session, State
from holdfast.conformance.shared.walks import Span


def timers(state: State, spans: Spans) -> Iterator[Timer[State]]:
    for session in (each for each in state.sessions if each.keeps):
        if session.unkept is not None:
            yield _lapse(state, session, session.unkept, spans)
            if session.dead and session.live and state.working:
                yield _given_up(state, session, session.unkept)
        elif session.dead and session.due is not None and state.working:
            yield _sweep(state, session, session.due)
            yield from _past(state, session, spans)
        elif session.mode == STARTING and session.due is not None and state.attended(session):
            yield _up(state, session, session.due)
        if session.mode == READY and not session.aged and state.attended(session):
            yield _age(state, session, spans)


def _named(session: Session) -> str:
    return f"{session.key.target} {session.key.profile}"


def _lapse(state: State, session: Session, unkept: Span, spans: Spans) -> Timer[State]:
    """What nobody renews ends one life time after it was renewed last."""

    def lapses(lo: float, hi: float) -> list[State]:
        due = Span(lo, hi + spans.give_up) if session.dead and session.live and state.working else None
        return [state.having(replace(session, holds=NOTHING, unkept=None, lapsed=Span(lo, hi), due=due))]

    return Timer(
        f"what {_named(session)} holds to lapse",
        "lapse",
        unkept.lo + spans.lease_ttl - spans.slack,
        unkept.hi + spans.lease_ttl + spans.slack,
        lapses,
        ("IN-PHASE-04",) if session.mode == NEW else ("IN-KILL-02",) if session.dead else ("IN-DEDUP-04",),
        (("target", session.key.target),),
    )


def _given_up(state: State, session: Session, unkept: Span) -> Timer[State]:
    """Whoever knows that its worker is dead may end the session before; its leases are there until they run out."""

    def ends(lo: float, hi: float) -> list[State]:
        return [state.having(replace(session.ended(GONE, Span(lo, hi)), unkept=unkept))]

    return Timer(f"an early end of {_named(session)}", "early end", unkept.hi, math.inf, ends, waited_for=False)


def _sweep(state: State, session: Session, due: Span) -> Timer[State]:
    return Timer(
        f"the end of {_named(session)}, whose worker is dead",
        "sweep",
        due.lo,
        due.hi,
        lambda lo, hi: [state.having(session.ended(GONE, Span(lo, hi)))],
        ("IN-KILL-05",),
        (("target", session.key.target),),
    )


def _past(state: State, session: Session, spans: Spans) -> Iterator[Timer[State]]:
    """From here on a start of its key has to make a session of its own. There is nothing to happen, but to ask."""
    if session.lapsed is not None and not session.aged:
        at = session.lapsed.hi + spans.past_ttl
        yield Timer(
            f"{_named(session)} to count no more",
            "past",
            at,
            at,
            lambda _lo, _hi: [state.having(replace(session, aged=True))],
            about=(("target", session.key.target),),
        )


def _up(state: State, session: Session, due: Span) -> Timer[State]:
    return Timer(
        f"the pipeline of {_named(session)} to be up",
        "pipeline",
        due.lo,
        due.hi,
        lambda lo, hi: [state.having(replace(session, mode=READY, since=Span(lo, hi), due=None))],
        ("IN-RUN-01",),
        (("target", session.key.target),),
        # One that runs too early may be one whose stop was put off until it ran.
        not_before=("IN-RUN-01", "IN-RUN-08"),
    )


def _age(state: State, session: Session, spans: Spans) -> Timer[State]:
    at = session.since.hi + spans.lease_ttl + spans.past_ttl
    return Timer(
        f"{_named(session)} to have run for longer than a lease lives",
        "age",
        at,
        at,
        lambda _lo, _hi: [state.having(replace(session, aged=True))],
        about=(("target", session.key.target),),
    )
