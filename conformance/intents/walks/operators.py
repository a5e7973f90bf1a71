"""What is done to leases, workers and APIs: loss of a lease, kill, stop and start of a worker, flag and secrets."""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import replace

from holdfast.check.walk.vocabulary import Branch, Command, Rule, Seen
from holdfast.conformance.intents.walks.rules import shows
from holdfast.conformance.intents.walks.sights import Met
from holdfast.conformance.intents.walks.spans import Spans
from holdfast.conformance.intents.walks.starts import all_handled, up_by, verdict
from holdfast.conformance.intents.walks.state import (
    DOWN,
    EXPIRED,
    FIRST,
    GONE,
    NEW,
    NOTHING,
    READY,
    SHUT,
    STANDBY,
    STARTING,
    STILL,
    STOPPED,
    UP,
    Session,
    State,
    secrets_after,
)
from holdfast.conformance.shared.walks import Span, in_time, span_of

Branches = Iterator[Branch[State]]


# --- leases


def take(state: State, command: Command, seen: Seen, spans: Spans) -> Branches:
    """A lease is somebody else's, or gone: who ran on it stops and ends, and leaves the other's lease alone (3.2)."""
    met: Met = seen.what
    at, channel = span_of(seen), command.get("target")
    if command.get("lease") == "slot":
        yield Branch((), replace(state, slots=state.slots + 1))
        return
    theft = command.name == "seize"
    holder = state.holder(channel)
    after = state
    if theft and command.get("lease") == "service":
        after = replace(after, foreign=after.foreign | {channel})
    elif theft:
        after = replace(after, slots=after.slots + 1)
    if holder is None:
        yield Branch((), after)
    elif not holder.begun:
        yield Branch((), after.having(replace(holder, holds=NOTHING, unkept=None, lapsed=at)))
    else:
        ended = holder.ended(EXPIRED, Span(at.lo, at.hi + spans.linger))
        rules = shows(ended, met.shown.get(ended.id), spans.running, "IN-RUN-05")
        yield Branch(rules, after.having(ended))


def give_back(state: State, _command: Command, _seen: Seen, _spans: Spans) -> Branches:
    """All leases of others are gone."""
    yield Branch((), replace(state, foreign=frozenset(), slots=0))


# --- workers


def kill(state: State, command: Command, seen: Seen, spans: Spans) -> Branches:
    """Nobody releases or renews what its sessions hold (5.3 A). If two work, whose they are shows only later."""
    at, name = span_of(seen), command.get("worker")
    after = state.with_worker(name, DOWN)
    for dead in _sessions_of(state, name):
        changed = after
        for session in (each for each in state.sessions if each.begun):
            if session.id in dead:
                changed = changed.having(_orphan(session, name, at, spans))
            elif not session.worker and not session.dead:
                changed = changed.having(replace(session, worker=_other(name)))
        yield Branch((), changed)


def _sessions_of(state: State, name: str) -> Iterator[frozenset[str]]:
    """Yields every set of sessions that this worker may run."""
    begun = [each for each in state.sessions if each.begun and not each.dead]
    surely = {each.id for each in begun if each.worker == name}
    maybe = [each.id for each in begun if not each.worker]
    for count in range(len(maybe) + 1):
        yield from (frozenset({*surely, *some}) for some in itertools.combinations(maybe, count))


def _other(name: str) -> str:
    return STANDBY if name == FIRST else FIRST


def _orphan(session: Session, name: str, at: Span, spans: Spans) -> Session:
    """Returns the session after its worker was killed; what was unkept already stays so."""
    unkept = session.unkept or Span(at.lo - spans.renewed, at.hi)
    return replace(session, worker=name, dead=True, aged=False, due=None, unkept=None if session.lapsed else unkept)


def term(state: State, command: Command, seen: Seen, spans: Spans) -> Branches:
    """A worker that is told to stop ends its sessions and releases their leases before it exits (3.2 step 7)."""
    met: Met = seen.what
    at, name = span_of(seen), command.get("worker")
    exited = in_time("the worker exits", met.exited, "IN-RUN-07")
    for ended in _sessions_of(state, name):
        after, rules = state.with_worker(name, DOWN), [exited]
        for session in (each for each in state.sessions if each.begun and not each.dead):
            if session.id in ended:
                now = session.ended(SHUT, Span(at.lo, at.hi + spans.linger))
                rules += shows(now, met.shown.get(session.id), spans.running, "IN-RUN-07")
            else:
                now = replace(session, worker=_other(name))
                rules += shows(now, met.shown.get(session.id), spans.running, "IN-RUN-01")
            after = after.having(now)
        yield Branch(tuple(rules), after)


def stand(state: State, command: Command, seen: Seen, spans: Spans) -> Branches:
    """A worker that stands still renews nothing."""
    at, name = span_of(seen), command.get("worker")
    unkept = Span(at.lo - spans.renewed, at.hi)
    after = state.with_worker(name, STILL)
    for session in (each for each in state.sessions if each.begun and not each.dead):
        after = after.having(replace(session, unkept=unkept, due=None))
    yield Branch((), after)


def resume(state: State, command: Command, seen: Seen, spans: Spans) -> Branches:
    """Who still has its leases goes on, who has lost them ends, and what has waited is handled (3.2 steps 1 and 6)."""
    met: Met = seen.what
    at, name = span_of(seen), command.get("worker")
    after = state.with_worker(name, UP)
    mine = [each for each in state.sessions if each.begun and not each.dead]
    for ways in itertools.product(*(_resumed(each, after, at, spans) for each in mine)):
        changed = after
        for session in ways:
            changed = changed.having(session)
        yield from _handled(changed, command, mine, met, at, spans)


def _resumed(session: Session, state: State, at: Span, spans: Spans) -> list[Session]:
    """Returns what may become of a session when its worker goes on."""
    end = Span(at.lo, at.hi + spans.linger)
    stopped = [session.ended(STOPPED, end)] if session.stopping else []
    if session.lapsed is not None and not session.key.live:
        # A recording has no lease that could have run out: whether it goes on is open.
        return [*stopped, session.ended(GONE, end), replace(session, unkept=None, lapsed=None)]
    if session.lapsed is not None:
        return [*stopped, replace(session.ended(EXPIRED, end), holds=NOTHING)]
    if session.stopping:
        return stopped
    kept = replace(session, unkept=None)
    if session.mode == STARTING:
        # How much of its start a pipeline has behind it is open.
        due = up_by(state.pace(session.key.target), at, spans)
        return [replace(kept, due=Span(at.lo, due.hi)), replace(kept, mode=READY, since=at, due=None)]
    return [kept]


def _handled(state: State, command: Command, before: Iterable[Session], met: Met, at: Span, spans: Spans) -> Branches:
    """Yields a branch for each order in which what has waited may be handled."""
    waiting = [each.id for each in state.sessions if each.mode == NEW]
    concerned = [*(each.id for each in before), *waiting]
    for after in all_handled([state], waiting, at, spans):
        rules: list[Rule] = []
        for session in (each for each in after.sessions if each.id in concerned):
            shown = met.shown.get(session.id)
            if session.id in waiting:
                rules += verdict(state, session, shown, command, spans)
            else:
                rules += shows(session, shown, spans.running, *_rows(session))
        yield Branch(tuple(rules), after)


def _rows(session: Session) -> tuple[str, ...]:
    if session.why == GONE:
        return ("IN-KILL-10",)
    if session.why == STOPPED:
        return ("IN-RUN-08",)
    return ("IN-RUN-05",) if session.why == EXPIRED else ("IN-RUN-04",)


def begin(state: State, command: Command, seen: Seen, spans: Spans) -> Branches:
    """A worker starts. The first one flushes all leases before anything else and ends what it has run (5.3 B)."""
    met: Met = seen.what
    at, name = span_of(seen), command.get("worker")
    after = state.with_worker(name, UP)
    dead = [each for each in state.sessions if each.begun and each.dead]
    if name == STANDBY:
        for session in (each for each in dead if each.lapsed):
            after = after.having(replace(session, due=Span(at.lo, at.hi + spans.give_up)))
        yield from _handled(after, command, (), met, at, spans)
        return
    after = replace(after, foreign=frozenset(), slots=0)
    for session in (each for each in after.sessions if each.keeps):
        after = after.having(replace(session, holds=NOTHING, unkept=None, lapsed=session.lapsed or at))
    for ended in _ended_by(dead, name):
        changed = after
        for session in dead:
            now = changed.session(session.id) or session
            if session.id in ended:
                changed = changed.having(now.ended(GONE, at))
            else:
                changed = changed.having(replace(now, due=Span(at.lo, at.hi + spans.give_up)))
        yield from _handled(changed, command, [each for each in dead if each.id in ended], met, at, spans)


def _ended_by(dead: list[Session], name: str) -> Iterator[frozenset[str]]:
    """Yields which sessions of dead workers the one that starts may end: its own, and others or not."""
    own = frozenset(each.id for each in dead if each.worker == name)
    everybody = frozenset(each.id for each in dead)
    yield everybody
    if own != everybody:
        yield own


# --- APIs


def api(state: State, _command: Command, _seen: Seen, _spans: Spans) -> Branches:
    """An API that starts anew has forgotten nothing: all it knows is in the store, but for the secrets (3.3, 5.3 B)."""
    yield Branch((), state)


def flip(state: State, _command: Command, _seen: Seen, _spans: Spans) -> Branches:
    """The flag is turned on all APIs, which disturbs no session (section 4)."""
    yield Branch((), replace(state, phase=3 - state.phase))


def secrets(state: State, command: Command, _seen: Seen, _spans: Spans) -> Branches:
    """All APIs get other secrets (3.3); what is mapped under one that they have no more is not found."""
    yield Branch((), replace(state, secrets=secrets_after(state.secrets, command.name)))
