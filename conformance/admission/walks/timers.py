"""What a target does by itself, and when: graces, tokens, silence, locks, windows, offers, promotions.

Names and numbers are those of the catalogue; every window is as wide as the rows allow. A session in grace is gone
between `grace` and `grace_reclaim` after the drop, its token dies at `token_ttl` sharp.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from holdfast.check.walk.vocabulary import Timer
from holdfast.conformance.admission.walks.counters import of_promotion
from holdfast.conformance.admission.walks.events import ADMITTED, DISCONNECTED, expecting
from holdfast.conformance.admission.walks.spans import Spans
from holdfast.conformance.admission.walks.state import GRACE, NEW, OWNERS, SILENT, Offer, State
from holdfast.conformance.shared.walks import Span

WHO = "who"


def timers(state: State, spans: Spans) -> Iterator[Timer[State]]:
    for who, session in state.sessions:
        if session.mode == GRACE:
            yield from _of_grace(state, who, session.since, spans, dead=session.dead)
        if session.mode in (NEW, SILENT):
            yield _of_silence(state, who, session.since, spans)
    for user, since in state.locks:
        yield _of_lock(state, user, since, spans)
    for user, failures in state.failures:
        yield _of_failure(state, user, failures, spans)
    for number, offer in enumerate(sorted(state.offers, key=lambda each: (each.who, each.since))):
        yield _of_offer(state, offer, number, spans)
    yield from _of_lines(state, spans)


def _of_grace(state: State, who: str, since: Span, spans: Spans, *, dead: bool) -> Iterator[Timer[State]]:
    yield Timer(
        f"the end of {who}'s grace",
        "grace",
        since.lo + spans.grace - spans.tolerance,
        since.hi + spans.grace_reclaim + spans.slack,
        lambda lo, hi: [_ended(state, who, Span(lo, hi), "grace_expired", spans)],
        ("AD-STALE-01",),
        ((WHO, who),),
        not_before=("AD-RECON-02",),
    )
    session = state.session(who)
    if session is not None and not dead:
        yield Timer(
            f"the end of {who}'s token",
            "token",
            *_sharp(since, spans.token_ttl, spans),
            lambda _lo, _hi: [state.with_session(who, replace(session, dead=True))],
            ("AD-RECON-04",),
            ((WHO, who),),
        )


def _of_silence(state: State, who: str, since: Span, spans: Spans) -> Timer[State]:
    return Timer(
        f"the end of {who}'s silent session",
        "stale",
        since.lo + spans.stale_limit - spans.tolerance,
        since.hi + spans.stale_reclaim + spans.slack,
        lambda lo, hi: [_ended(state, who, Span(lo, hi), "network", spans)],
        ("AD-STALE-02",),
        ((WHO, who),),
    )


def _ended(state: State, who: str, at: Span, reason: str, spans: Spans) -> State:
    """Returns the state after the janitor has ended a session, with the line that it leaves."""
    after = state.ended(who).settled(at)
    if not spans.logged:
        return after
    by = at.hi + spans.prompt_never
    if spans.via_grace and reason == "network":
        after = expecting(after, (DISCONNECTED, who, "grace_expired"), by=by, due=False)
    return expecting(after, (DISCONNECTED, who, reason), by=by)


def _of_lock(state: State, user: str, since: Span, spans: Spans) -> Timer[State]:
    return Timer(
        f"the end of {user}'s lock",
        "lock",
        *_sharp(since, spans.rate_lock, spans),
        lambda _lo, _hi: [state.with_lock(user, None)],
        ("AD-RATE-01",),
        ((WHO, _somebody_of(user)),),
    )


def _of_failure(state: State, user: str, failures: tuple[Span, ...], spans: Spans) -> Timer[State]:
    """The oldest failure leaves first; only the number of those that are left can be seen."""
    return Timer(
        f"{user}'s oldest failure leaving the window",
        "window",
        *_sharp(failures[0], spans.rate_window, spans),
        lambda _lo, _hi: [state.with_failures(user, failures[1:])],
        ("AD-RATE-03",),
        ((WHO, _somebody_of(user)),),
    )


def _of_offer(state: State, offer: Offer, number: int, spans: Spans) -> Timer[State]:
    return Timer(
        f"the end of offer {number + 1}, to {offer.who}",
        "offer",
        *_sharp(offer.since, spans.replacement_ttl, spans),
        lambda _lo, _hi: [replace(state, offers=state.offers - {offer})],
        ("AD-REPL-03",),
        ((WHO, offer.who),),
    )


def _of_lines(state: State, spans: Spans) -> Iterator[Timer[State]]:
    for where, room in state.rooms:
        if room.since is not None:
            # Whether an instance in maintenance promotes is open.
            latest = math.inf if room.closed else room.since.hi + spans.promote_never
            yield Timer(
                f"the promotion on {where}",
                "promotion",
                room.since.lo,
                latest,
                partial(_promote, state, where, spans),
                ("AD-QUEUE-10",),
                (("where", where),),
                waited_for=not room.closed,
            )
        for who in room.line:
            if state.void(who):
                yield _of_void_entry(state, who, where)


def _promote(state: State, where: str, spans: Spans, lo: float, hi: float) -> list[State]:
    after, who = state.promoted(where, Span(lo, hi)), state.next_of(where)
    by = hi + spans.prompt_never
    if spans.counted:
        after = of_promotion(after, lo, by)
    return [expecting(after, (ADMITTED, who, ""), by=by) if spans.logged else after]


def _of_void_entry(state: State, who: str, where: str) -> Timer[State]:
    """An entry of a character with a session, or suspended, may be dropped at once or when a promotion reaches it."""
    drop: Callable[[float, float], list[State]] = lambda lo, hi: [  # noqa: E731 - one of many like it
        state.out_of_line(who, where).settled(Span(lo, hi))
    ]
    return Timer(f"the drop of {who}'s entry on {where}", "void entry", -math.inf, math.inf, drop, waited_for=False)


def _sharp(since: Span, duration: float, spans: Spans) -> tuple[float, float]:
    return since.lo + duration - spans.tolerance, since.hi + duration + spans.tolerance


def _somebody_of(user: str) -> str:
    return next(who for who, owner in OWNERS.items() if owner == user)
