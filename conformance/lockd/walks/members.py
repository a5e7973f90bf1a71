"""Membership: announce, leave by oneself, and the node's own leave and return (TC Cluster Membership)."""

from collections.abc import Iterator
from dataclasses import replace

from holdfast.check.walk.vocabulary import Branch, Command, Rule, Seen
from holdfast.conformance.lockd.walks.commands import MALFORMED
from holdfast.conformance.lockd.walks.rules import accepted, lasts, refused_as_malformed, turned_away
from holdfast.conformance.lockd.walks.sights import Asked, Heard, Listed, Saying
from holdfast.conformance.lockd.walks.spans import Spans
from holdfast.conformance.lockd.walks.state import GONE, NODE, SPIES, Member, Report, State
from holdfast.conformance.shared.walks import in_time, rule, span_of

Branches = Iterator[Branch[State]]
# A TTL goes over the wire in whole milliseconds.
TTL_ROUNDING = 0.002


def announce(state: State, command: Command, seen: Seen, spans: Spans) -> Branches:
    """Stores or renews the caller's lease; another endpoint takes the place of the old one."""
    sight: Listed = seen.what
    who, at = command.get("who"), span_of(seen)
    after = state.with_member(who, Member(command.get("at") or who, at)).after(state, at, spans.lag)
    moved = state.member(who) is not None and state.others != after.others
    rules = (
        accepted(sight.answer, "TC-MEMBER-01"),
        *_list(sight, after, "TC-MEMBER-01", "TC-IDENT-03" if moved else ""),
        lasts(sight.answer, seen, spans.membership_ttl, spans.tolerance, "TC-MEMBER-03"),
    )
    yield Branch(rules, after)


def depose(state: State, command: Command, seen: Seen, spans: Spans) -> Branches:
    """A peer that refuses its votes announces itself; the world has waited until the node led no more."""
    refusing = state.with_refusing(state.refusing | {command.get("who")})
    return announce(refusing.after(state, span_of(seen), 0.0), command, seen, spans)


def leave(state: State, command: Command, seen: Seen, spans: Spans) -> Branches:
    """Removes the caller's lease, whatever its body names; a caller without one changes nothing."""
    sight: Listed = seen.what
    at, gone = span_of(seen), state.member(command.get("who"))
    after = state.with_member(command.get("who"), None).after(state, at, spans.lag)
    shared = gone is not None and gone.at in after.others
    rules = _list(sight, after, "TC-MEMBER-06" if shared else "TC-LEAVE-01", "TC-LEAVE-01")
    yield Branch((accepted(sight.answer, "TC-LEAVE-01"), *rules), after)


def exit_(state: State, _command: Command, seen: Seen, spans: Spans) -> Branches:
    """The node leaves by itself: everybody listed is told, and it is out of its own list."""
    sight: Listed = seen.what
    at = span_of(seen)
    out = replace(state, here=False, lead=None, was=state.lead or 0, free=at).after(state, at, spans.lag)
    rules = (
        accepted(sight.answer, "TC-LEAVE-05"),
        *_taking_leave(sight, state, seen, "TC-LEAVE-05"),
        *_list(sight, out, "TC-LEAVE-05"),
    )
    yield Branch(rules, out)


def _taking_leave(sight: Listed, state: State, seen: Seen, row: str) -> tuple[Rule, ...]:
    """Everybody listed who can be reached is told, nobody else is, and a leader releases its lease there."""
    peers = [each for each in state.others if each in SPIES and state.trouble(each) != GONE]
    told = all(sight.leaves.get(each) for each in peers)
    # Somebody who has just announced itself may be no peer of the election yet, and one whose lease runs out during the
    # call may be told and then be no member any more.
    new = state.listed_by > seen.sent
    strangers = not new and any(sight.leaves.get(each) for each in SPIES if each not in state.others)
    released = state.lead is None or new or all(_released(sight, each, state.lead) for each in peers)
    return (
        rule("a marked leave at every member", told, row),
        in_time("a release at every member", released, "TC-LEAVE-10"),
        rule("no leave at who is no member", not strangers, "TC-LEAVE-06"),
    )


def _released(sight: Listed, peer: str, term: int | None) -> bool:
    terms = sight.releases.get(peer, ())
    return bool(terms) and (not term or term in terms)


def come_back(state: State, _command: Command, seen: Seen, spans: Spans) -> Branches:
    """An explicit announce ends the pause. Whether a voter that was outside remembers a live lease is open."""
    sight: Listed = seen.what
    at = span_of(seen)
    back = replace(state, here=True, lead=None, free=at).after(state, at, spans.lag)
    rules = (accepted(sight.answer, "TC-LEAVE-04"), *_list(sight, back, "TC-LEAVE-04"))
    yield Branch(rules, back)
    if back.slot is not None:
        yield Branch(rules, back.lapsed(at))
    if state.adrift:  # nobody says that it may not have led itself meanwhile
        yield Branch(rules, replace(back.lapsed(at), lead=0))


def crash(state: State, _command: Command, seen: Seen, spans: Spans) -> Branches:
    """The node is killed and started again on its store: leases and registry are there, its votes and terms are not.

    A restart ends a pause. Which of the decisions from before it still knows is open, so others come in their place.
    """
    sight: Listed = seen.what
    at = span_of(seen)
    anew = replace(state, here=True, lead=None, was=0, slot=None, asked=("", 0), free=at, txns=())
    anew = replace(anew, floor=0, voted=0, blocked=(0, 0.0), listed_by=at.hi + spans.lag, shaky=True)
    rules = (accepted(sight.answer, "TC-DATA-05"), *_list(sight, anew, "TC-DATA-05"))
    yield Branch(rules, replace(anew, settles=anew.listed_by, unsettled=True))


def stop(state: State, command: Command, seen: Seen, spans: Spans) -> Branches:
    """A node that is told to stop leaves first, whoever of its peers can't be reached; then it is started again."""
    sight: Listed = seen.what
    gone = in_time("the process ends", sight.ended, "TC-LEAVE-09")
    left = _taking_leave(sight, state, seen, "TC-LEAVE-09") if state.here else ()
    for branch in crash(state, command, seen, spans):
        yield Branch((gone, *left, *branch.rules), branch.state)


def intrude(state: State, _command: Command, seen: Seen, _spans: Spans) -> Branches:
    """A certificate for clients alone opens none of the routes of servers."""
    yield Branch((turned_away(seen.what, "TC-AUTH-02"),), state)


def malformed(state: State, command: Command, seen: Seen, _spans: Spans) -> Branches:
    """A call that lacks what it needs changes nothing; the looks after it tell."""
    yield Branch((refused_as_malformed(seen.what, MALFORMED[command.get("call")]),), state)


def listed(state: State, _command: Command, seen: Seen, _spans: Spans) -> Branches:
    sight: Listed = seen.what
    rules = _list(sight, state, "TC-MEMBER-03", "TC-MEMBER-05")
    yield Branch((accepted(sight.answer, "TC-MEMBER-04"), *rules), state)


def _list(sight: Listed, state: State, row: str, surplus_row: str = "") -> tuple[Rule, ...]:
    """The list has exactly the members, and the node if it is here."""
    itself = (
        in_time("the node in its list", NODE in sight.names, "TC-LOOP-01")
        if state.here
        else rule("no node in its list", NODE not in sight.names, "TC-LEAVE-03")
    )
    shown, wanted = set(sight.names) - {NODE}, set(state.others)
    return (
        itself,
        rule(f"{', '.join(sorted(wanted)) or 'nobody'} in the list besides", wanted <= shown, row),
        rule("nobody else in the list", shown <= wanted, surplus_row or row),
        rule("a sorted list without repetitions", sight.tidy, "TC-MEMBER-04"),
    )


def report(state: State, command: Command, seen: Seen, _spans: Spans) -> Branches:
    """A spy begins to say that it leads, to whoever asks."""
    said: Asked = seen.what
    yield Branch((), replace(state, asked=("", 0), report=Report(command.get("who"), said.term, span_of(seen))))


def heard(state: State, _command: Command, seen: Seen, spans: Spans) -> Branches:
    """What spies got without a reason: no leave is passed on, no replica sent again, no vote asked beside a leader."""
    sight: Heard = seen.what
    slot = state.slot
    led = slot.led + spans.tolerance if slot is not None and slot.led else 0.0
    # One in a lower term is the last attempt of an old leader to renew.
    early = [at for at, term in sight.candidacies if slot and led and led < at < seen.sent and term > slot.term]
    rules = (
        *(_of_itself(each, spans) for each in sight.said),
        rule("no leave passed on", not sight.leaves, "TC-LEAVE-02"),
        rule("no replica of anything else", not sight.replicas, "TC-RM-10"),
        rule("no candidacy beside a valid leader", not early, "TC-ELECT-08"),
    )
    yield Branch(rules, state)


def _of_itself(said: Saying, spans: Spans) -> Rule:
    """What a node says of its own accord is about itself, and a lease that it asks for is one leader TTL."""
    row = {"acquire": "TC-ELECT-02", "renew": "TC-STEP-01", "announce": "TC-LOOP-02", "register": "TC-RM-01"}[said.what]
    wanted, held = "the node itself", said.itself
    if said.what in ("acquire", "renew"):
        wanted += f", for {spans.leader_ttl:g} s"
        held = held and abs(said.ttl - spans.leader_ttl) < TTL_ROUNDING
    return rule(f"{said.what} names {wanted}", held, row)
