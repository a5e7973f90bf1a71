"""Starts: every legal answer in every state, and what a worker may make of the session (3.1, 3.2, 3.3, 3.4, 4).

In phase 1 the API takes the channel before it looks for the key; a key that maps to a live session gives its id again;
else there is a new session, which a worker then runs or ends.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from holdfast.check.walk.vocabulary import Branch, Command, Rule, Seen
from holdfast.conformance.intents import wire
from holdfast.conformance.intents.walks import rows
from holdfast.conformance.intents.walks.commands import OPTIONAL, key_of
from holdfast.conformance.intents.walks.rules import accepted, conflict, new_session, refusal, same_session, shows
from holdfast.conformance.intents.walks.sights import Started
from holdfast.conformance.intents.walks.spans import Spans
from holdfast.conformance.intents.walks.state import (
    BOTH,
    BRIEF,
    BUSY,
    CHANNEL,
    FAILED,
    FAILS,
    LONG,
    NEW,
    NO_TUNER,
    NOTHING,
    READY,
    SLOW,
    STARTING,
    STOPPED,
    Key,
    Session,
    State,
)
from holdfast.conformance.shared.walks import Span, span_of

Branches = Iterator[Branch[State]]


@dataclass(frozen=True)
class Start:
    """One start in one state."""

    state: State
    command: Command
    seen: Seen
    spans: Spans

    @property
    def sight(self) -> Started:
        started: Started = self.seen.what
        return started

    @property
    def key(self) -> Key:
        return key_of(self.command, self.spans)

    @property
    def at(self) -> Span:
        return span_of(self.seen)

    def branches(self) -> Branches:
        if self.command.get("with") in OPTIONAL:
            # A field that a target need not know.
            yield Branch(refusal(self.sight.answer, 400, "IN-IDEM-03"), self.state)
        taking = self.state.phase == 1 and self.key.live
        taken = self.state.taken(self.key.target, self.at) if taking else False
        if taken is not False:
            why = rows.of_conflict(self.state, self.command, self.key.target, self.key.profile)
            yield Branch(conflict(self.sight.answer, self.spans.retry_after, *why), self.state)
        if taken is not True:
            yield from self._looked_up(taking=taking)

    def _looked_up(self, *, taking: bool) -> Branches:
        """`taking`: the API holds the channel by now, for a session that may never be."""
        for found in mapped(self.state, self.key, self.at, self.spans):
            if found is None:
                yield from self._new(taking=taking)
            else:
                why = rows.of_replay(self.state, self.command, found)
                rules = (*accepted(self.sight.answer, *why), same_session(self.sight.answer, found, *why))
                yield Branch(rules, self.state)
                if taking and found.mode == NEW:  # the lease that it takes anew may stay, if it is the session's
                    kept = replace(found, holds=CHANNEL, unkept=self.at, lapsed=None)
                    yield Branch(rules, self.state.having(kept))

    def _new(self, *, taking: bool) -> Branches:
        answer, why = self.sight.answer, rows.of_new(self.state, self.state.last(self.key), self.key.target)
        known = (*accepted(answer, "IN-QUEUE-04", *why), new_session(answer, self.state.sessions, *why))
        session = Session(answer.session_id, self.key, self.state.secrets[0], since=self.at)
        if taking:
            session = replace(session, holds=CHANNEL, unkept=self.at)
        made = self.state.begun_with(session).announcing(wire.START_EVENT, session.id, due=True)
        if not self.state.working:
            yield Branch((*known, *self._shown(made, session.id)), made)
            return
        for after in handled(made, session.id, self.at, self.spans):
            yield Branch((*known, *self._shown(after, session.id)), after)

    def _shown(self, after: State, id_: str) -> tuple[Rule, ...]:
        session = after.session(id_)
        if session is None:
            raise LookupError("the model has no session that was just started")
        return verdict(self.state, session, self.sight.shown, self.command, self.spans)


def verdict(
    before: State, session: Session, shown: wire.Answer | None, command: Command, spans: Spans
) -> tuple[Rule, ...]:
    """What a session shows when a worker has dealt with it, or when none does."""
    return shows(session, shown, spans.running, *rows.of_verdict(before, session, command))


def mapped(state: State, key: Key, at: Span, spans: Spans) -> list[Session | None]:
    """Returns what the look-up of a key may find: under the current secret, then under the previous one; else nothing.

    A session that has ended is not found. One that is about to, or that nobody runs any more, may be.
    """
    found: list[Session | None] = []
    for secret in filter(None, dict.fromkeys(state.secrets)):
        for session in state.sessions:
            if (session.key, session.secret, session.bound) != (key, secret, True):
                continue
            counts = _counts(state, session, at, spans)
            found += [session] if counts is not False else []
            if counts is True:
                return found
    return [*found, None]


def _counts(state: State, session: Session, at: Span, spans: Spans) -> bool | None:
    """Whether a mapping leads to this session; None where that is open."""
    if not session.live:
        return None if at.lo < session.since.hi else False
    if session.stopping:
        return None
    if session.lapsed is None or not session.begun:
        return True
    # Nobody has renewed its leases for so long that they are gone. Where somebody works it has to be given up.
    return False if state.working and session.dead and at.lo > session.lapsed.hi + spans.past_ttl else None


def handled(state: State, id_: str, at: Span, spans: Spans) -> Iterator[State]:
    """Yields what a worker may make of a new session: dedup lease, then tuner lease, then the pipeline (3.2)."""
    session = state.session(id_)
    if session is None:
        raise LookupError("the model has no session of this id")
    end = Span(at.lo, at.hi + spans.linger)
    if session.stopping:
        yield state.having(session.ended(STOPPED, end))
        return
    if session.key.live:
        taken = False if session.holds else state.taken(session.key.target, at, but=id_)
        if taken is not False:
            yield state.having(replace(session.ended(BUSY, end), holds=NOTHING))
        if taken is True:
            return
        full = state.full(at)
        if full is not False:
            yield state.having(replace(session.ended(NO_TUNER, end), holds=CHANNEL))
        if full is True:
            return
    yield _running(state, session, at, spans)


def _running(state: State, session: Session, at: Span, spans: Spans) -> State:
    """Returns the state after the pipeline of a session was asked to start."""
    pace = state.pace(session.key.target)
    worker = state.up[0] if len(state.up) == 1 else ""
    holds = BOTH if session.key.live else NOTHING
    held = replace(session, holds=holds, unkept=None, lapsed=None, worker=worker, since=at, picked=at)
    if pace in (SLOW, LONG):
        held = replace(held, mode=STARTING, due=up_by(pace, at, spans))
    elif pace in (FAILS, BRIEF):
        held = held.ended(FAILED, Span(at.lo, at.hi + spans.linger))
    else:
        held = replace(held, mode=READY)
    return state.having(held).asked_for(session.key.target)


def up_by(pace: str, at: Span, spans: Spans) -> Span:
    """Returns when a pipeline is up that was asked to start slowly at this time."""
    delay = spans.slow if pace == SLOW else spans.long
    return Span(at.lo + delay, at.hi + delay + spans.ready_never)


def all_handled(states: Iterable[State], ids: Sequence[str], at: Span, spans: Spans) -> Iterator[State]:
    """Yields what workers may make of several new sessions, in whatever order they come to them."""
    found: dict[State, None] = {}
    for state in states:
        for order in itertools.permutations(ids):
            after = [state]
            for id_ in order:
                after = [each for before in after for each in handled(before, id_, at, spans)]
            found |= dict.fromkeys(after)
    yield from found
