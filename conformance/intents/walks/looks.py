"""What is looked at after each step: polls, Redis with leases, mappings, records and bus, and pipelines that ran."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

from holdfast.check.walk.vocabulary import Branch, Command, Rule, Seen
from holdfast.conformance.intents import wire
from holdfast.conformance.intents.course import FORWARD, forward
from holdfast.conformance.intents.walks import rows
from holdfast.conformance.intents.walks.rules import shows
from holdfast.conformance.intents.walks.sights import Logged, Stored
from holdfast.conformance.intents.walks.spans import Spans
from holdfast.conformance.intents.walks.state import (
    BOTH,
    ENDED,
    NEW,
    Announced,
    Session,
    State,
)
from holdfast.conformance.intents.wire import Answer
from holdfast.conformance.shared.walks import Span, in_time, rule, span_of

Branches = Iterator[Branch[State]]
# What somebody else's lease has as its owner.
FOREIGN = "foreign"
_ROWS_OF_RUNS = ("IN-DEDUP-03", "IN-DEDUP-02", "IN-TUNER-03", "IN-RUN-08")


def polls(state: State, command: Command, seen: Seen, spans: Spans) -> Branches:
    """Every session shows what it is; one that has ended goes on to show the same end."""
    shown: Mapping[str, Answer] = seen.what
    rules: list[Rule] = []
    after = state
    for session in state.sessions:
        answer = shown.get(session.id)
        if answer is None:
            continue
        rules += shows(session, answer, spans.running, *rows.of_poll(state, session, command.get("after")))
        if session.mode == ENDED:
            after = after.having(replace(session, said=(answer.state, answer.reason)))
    yield Branch(tuple(rules), after)


def runs(state: State, _command: Command, seen: Seen, _spans: Spans) -> Branches:
    """Each session that came to its turn has asked for its pipeline once, and no other one has."""
    counted: Mapping[str, int] = seen.what
    expected = dict(state.runs)
    rules = [
        rule(f"{expected.get(target, 0)} pipelines of {target}", count == expected.get(target, 0), *_ROWS_OF_RUNS)
        for target, count in counted.items()
    ]
    yield Branch(tuple(rules), state)


def logged(state: State, _command: Command, seen: Seen, _spans: Spans) -> Branches:
    """A pipeline starts once both leases are there, and the states of its session only come nearer to READY."""
    told: Mapping[str, Logged] = seen.what
    rules: list[Rule] = []
    for id_, lines in told.items():
        session = state.session(id_)
        if session is None:
            continue
        # An event that came again may have refreshed the channel's lease; nobody takes a second slot.
        kinds, wanted = set(lines.leases), {"service", "tuner"} if session.key.live else set()
        held = kinds == wanted and lines.leases.count("tuner") <= 1
        row = "IN-RUN-02" if session.key.live else "IN-TUNER-04"
        rules.append(rule(f"{' and '.join(sorted(wanted)) or 'no'} lease before the pipeline", held, row))
        rules.append(rule(FORWARD, forward(lines.states), "IN-RUN-01"))
    yield Branch(tuple(rules), state)


def stored(state: State, command: Command, seen: Seen, spans: Spans) -> Branches:
    sight: Stored = seen.what
    at, after = span_of(seen), command.get("after")
    rules = [*_channels(state, sight, after, at, spans), *_tuners(state, sight, after, at, spans)]
    rules += [*_lives(state, sight, at, spans), *_mappings(state, sight), *_records(state, sight)]
    nobody = rows.of_leftovers(after)
    rules.append(rule("nothing that nobody asked for", not sight.strays, *nobody))
    said, left = _events(state, sight, nobody)
    yield Branch((*rules, *said), _narrowed(replace(state, announced=left), sight, at, spans))


def _channels(state: State, sight: Stored, after: str, at: Span, spans: Spans) -> Iterator[Rule]:
    for channel, lease in sight.channels.items():
        holder = state.holder(channel)
        if channel in state.foreign:
            yield rule(f"somebody else's lease of {channel}", lease.owner == FOREIGN, "IN-RUN-05", "IN-BUSY-04")
        elif holder is not None:
            held = lease.owner == holder.id or (not lease.owner and _lapsing(holder, at, spans))
            yield in_time(f"the lease of {channel} with {holder.id}", held, *rows.of_lease(state, holder, after))
        else:
            why = rows.of_no_lease(state, channel, after) if lease.owner != FOREIGN else ("IN-KILL-06",)
            yield in_time(f"no lease of {channel}", not lease.owner, *why)


def _lapsing(session: Session, at: Span, spans: Spans) -> bool:
    """Whether its leases run out about now: one may be gone a moment before the other."""
    return session.unkept is not None and at.hi >= session.unkept.lo + spans.lease_ttl - spans.slack


def _tuners(state: State, sight: Stored, after: str, at: Span, spans: Spans) -> Iterator[Rule]:
    """One slot for each that holds one, and no other (3.2 step 2)."""
    owners = [lease.owner for lease in sight.tuners if lease.owner]
    holders = [each for each in state.sessions if each.holds == BOTH and each.keeps]
    for holder in holders:
        why = rows.of_slot(state, holder, after)
        held = owners.count(holder.id) == 1 or (holder.id not in owners and _lapsing(holder, at, spans))
        yield in_time(f"one tuner lease of {holder.id}", held, *why)
    foreign, row = owners.count(FOREIGN), "IN-RUN-05" if state.slots else "IN-KILL-06"
    yield rule(f"{state.slots} tuner leases of somebody else", foreign == state.slots, row)
    others = len(owners) - foreign - sum(owners.count(holder.id) for holder in holders)
    yield in_time("no other tuner lease", not others, "IN-RUN-06", "IN-HERD-02", "IN-TUNER-04")


def _lives(state: State, sight: Stored, at: Span, spans: Spans) -> Iterator[Rule]:
    """Every lease ends, and one that nobody renews ends one life time after it was renewed last."""
    for lease in (*sight.channels.values(), *sight.tuners):
        session = state.session(lease.owner)
        if session is None:
            continue
        left = lease.left if lease.left is not None else math.inf
        held = left <= spans.lease_ttl + spans.slack
        yield rule(f"a lease for {spans.lease_ttl:g} s at most", held, "IN-DEDUP-04")
        if session.picked is not None:
            row = "IN-PHASE-03" if state.phase == 1 else "IN-DEDUP-04"
            fresh = at.hi + left - spans.lease_ttl >= session.picked.lo - spans.slack
            yield in_time("a lease as long as it was when a worker took it", fresh, row)
        if session.unkept is not None:
            row = "IN-PHASE-04" if session.mode == NEW else "IN-KILL-02"
            since = at.lo + left - spans.lease_ttl
            yield rule("a lease that nobody has renewed meanwhile", since <= session.unkept.hi + spans.slack, row)


def _mappings(state: State, sight: Stored) -> Iterator[Rule]:
    """The key of a session that runs leads to it, and is written under one secret alone (3.3)."""
    if not sight.mappings:
        return
    new = {each.id for each in state.announced if each.kind == wire.START_EVENT}
    for session in state.living:
        own = (session.secret, session.key)
        said = f"{' '.join(map(str, session.key))} under {session.secret}"
        if session.bound and state.attended(session):
            held = sight.mappings.get(own) == session.id
            yield rule(f"the mapping of {said}", held, "IN-KEY-01", "IN-IDEM-04")
        if session.id in new:
            others = [key for key, id_ in sight.mappings.items() if id_ == session.id and key != own]
            yield rule(f"no other mapping than that of {said}", not others, "IN-KEY-04")


def _records(state: State, sight: Stored) -> Iterator[Rule]:
    for session in state.sessions:
        there = session.id in sight.records
        yield rule(f"a record of {session.id}", there, "IN-QUEUE-01")
        if there and session.mode == NEW and not session.stopping:
            yield rule("its state NEW", sight.records[session.id].upper() in wire.NEW, "IN-QUEUE-01")


def _events(state: State, sight: Stored, nobody: rows.Rows) -> tuple[list[Rule], tuple[Announced, ...]]:
    """Each new session has one start event, which names all that it has to; a stop may have one (3.1 step 5)."""
    left, rules = list(state.announced), list[Rule]()
    for entry in sight.events:
        found = next((each for each in left if (each.kind, each.id) == (entry.kind, entry.id)), None)
        if found is not None:
            left.remove(found)
        rules.append(rule(f"no {entry.kind} of {entry.id or 'nobody'}", found is not None, *nobody))
        rules.append(rule(f"a {entry.kind} that names what it starts", entry.sound, "IN-QUEUE-03"))
    missing = [each for each in left if each.due]
    rules.append(rule("the start event of each new session", not missing, "IN-QUEUE-02", "IN-QUEUE-03"))
    return rules, tuple(each for each in left if not each.due)


def _narrowed(state: State, sight: Stored, at: Span, spans: Spans) -> State:
    """Returns the state with what life times say about leases that nobody renews: when they were renewed last.

    A machine that is busy may have kept the last renewal from coming in time, so what they say counts.
    """
    for session in (each for each in state.sessions if each.holds and each.unkept):
        lease = sight.channels.get(session.key.target)
        if lease is None or lease.left is None or lease.owner != session.id or session.unkept is None:
            continue
        renewed = lease.left - spans.lease_ttl
        said = Span(at.lo + renewed - spans.slack, min(at.hi + renewed, session.unkept.hi) + spans.slack)
        state = state.having(replace(session, unkept=said))
    return state
