"""The node as a voter: its one lease slot, and what it says about the leader (Terms and leases; Observed leader).

A slot belongs to the node itself while it leads, to a spy while that one's vote or lease is live, and else to nobody.
A node that can't win goes on trying: for a moment its own candidacy holds the slot and turns others away. So a refusal
of what would be granted is legal now and then, but not for as long as an election takes.
"""

from collections.abc import Iterator
from dataclasses import replace

from holdfast.check.walk.vocabulary import Branch, Command, Rule, Seen
from holdfast.conformance.lockd.walks.rules import ACTIVE, STALE, UNAVAILABLE, accepted, lasts, refusal, turned_away
from holdfast.conformance.lockd.walks.sights import Asked, Shown
from holdfast.conformance.lockd.walks.spans import Spans
from holdfast.conformance.lockd.walks.state import NODE, Slot, State
from holdfast.conformance.shared.walks import in_time, rule, span_of

Branches = Iterator[Branch[State]]
# Refusals in a row after which "it was just a candidate itself" has to be a matter of time.
OFTEN = 3


def acquire(state: State, command: Command, seen: Seen, spans: Spans) -> Branches:
    asked: Asked = seen.what
    slot, who = state.slot, command.get("who")
    if state.here and state.unsettled:
        yield _not_yet(state, asked)
    if not state.here:
        yield Branch((turned_away(asked.answer, "TC-PEER-03"),), state)
    elif state.lead is not None:
        yield Branch((_refused(asked, state.lead),), state)
    elif slot is not None and slot.learned:
        yield Branch((refusal(asked.answer, (STALE, ACTIVE), "TC-ELECT-05"),), state)
        yield _granted(state, who, seen, spans, "TC-ELECT-05")
    elif slot is None:
        yield from _free(state, who, seen, spans)
    elif slot.holder != who or asked.term < slot.term:
        yield Branch((_refused(asked, slot.term),), state)
    else:
        yield _granted(state, who, seen, spans, "TC-ELECT-06")
        if asked.term > slot.term:  # whether the holder may go on to a higher term is open
            yield Branch((_refused(asked, slot.term),), state)


def _not_yet(state: State, asked: Asked) -> Branch[State]:
    """A node that has just come back takes part in elections again with its next tick."""
    return Branch((refusal(asked.answer, (UNAVAILABLE,), "TC-LEAVE-04"),), state)


def _free(state: State, who: str, seen: Seen, spans: Spans) -> Branches:
    """Nobody holds the slot. A term in which somebody led is over; one that was only voted in may come again."""
    asked: Asked = seen.what
    if asked.term <= state.floor:
        yield Branch((refusal(asked.answer, (STALE, ACTIVE), "TC-ELECT-05"),), state)
        return
    yield _granted(state, who, seen, spans, "TC-ELECT-05")
    if asked.term <= state.voted:
        yield Branch((refusal(asked.answer, (STALE, ACTIVE), "TC-ELECT-05"),), state)
        return
    times, since = state.blocked
    times, since = times + 1, since or seen.sent
    patient = times <= OFTEN or seen.sent - since <= spans.elected
    rules = (refusal(asked.answer, (ACTIVE,), "TC-ELECT-05"), rule("a grant by now", patient, "TC-ELECT-05"))
    yield Branch(rules, replace(state, blocked=(times, since)))


def _granted(state: State, who: str, seen: Seen, spans: Spans, row: str) -> Branch[State]:
    asked: Asked = seen.what
    led = state.slot.led if state.slot and (state.slot.holder, state.slot.term) == (who, asked.term) else 0.0
    rules = (
        rule("a grant", asked.answer.ok and asked.answer.fields.get("granted") is True, row),
        rule("the candidate and its term in the grant", asked.named, "TC-ELECT-06"),
        lasts(asked.answer, seen, asked.ttl, spans.tolerance, "TC-ELECT-06"),
    )
    slot = Slot(who, asked.term, span_of(seen), asked.ttl, led)
    return Branch(rules, replace(state, slot=slot, blocked=(0, 0.0)))


def _refused(asked: Asked, current: int) -> Rule:
    """A live lease belongs to its holder; which code an equal term gets is open, as is a term not yet told."""
    if not current or asked.term == current:
        codes: tuple[str, ...] = (STALE, ACTIVE)
    else:
        codes = (STALE,) if asked.term < current else (ACTIVE,)
    return refusal(asked.answer, codes, "TC-ELECT-05")


def renew(state: State, command: Command, seen: Seen, _spans: Spans) -> Branches:
    asked: Asked = seen.what
    slot = state.slot
    if state.unsettled:
        yield _not_yet(state, asked)
    refused = Branch((refusal(asked.answer, (STALE, ACTIVE), "TC-ELECT-05"),), state)
    if state.lead is not None or slot is None or slot.learned:
        yield refused
    if state.lead is not None or slot is None:
        return
    if (slot.holder, slot.term) != (command.get("who"), asked.term):
        yield Branch((_refused(asked, slot.term),), state)
    else:
        led = slot.led or seen.received
        held = slot._replace(since=span_of(seen), ttl=asked.ttl, led=led, learned=False)
        done = rule("a renewal", asked.answer.ok and asked.answer.fields.get("renewed") is True, "TC-ELECT-05")
        yield Branch((done,), replace(state, slot=held, floor=max(state.floor, slot.term)))


def release(state: State, command: Command, seen: Seen, _spans: Spans) -> Branches:
    asked: Asked = seen.what
    slot = state.slot
    if state.unsettled:
        yield _not_yet(state, asked)
    if state.lead is None and (slot is None or slot.learned):
        # Nothing was granted here: saying so and doing nothing both conform.
        yield Branch((), state)
        yield Branch((accepted(asked.answer, "TC-LEAVE-11"),), state.lapsed(span_of(seen)))
    elif slot is not None and (slot.holder, slot.term) == (command.get("who"), asked.term):
        done = rule("a release", asked.answer.ok and asked.answer.fields.get("released") is True, "TC-LEAVE-11")
        yield Branch((done,), state.lapsed(span_of(seen)))
    else:
        yield Branch((turned_away(asked.answer, "TC-LEAVE-11"),), state)


def shown(state: State, _command: Command, seen: Seen, spans: Spans) -> Branches:
    """What `GET /v1/tc/leader` says. A record that has lapsed may stay, since it says so itself."""
    sight: Shown = seen.what
    if state.adrift:
        yield Branch((), state)
    elif state.here and state.lead is not None:
        yield _itself(state, seen, spans)
    elif state.here and state.slot is not None and state.slot.led:
        yield Branch(_followed(sight, state.slot), state)
    elif not state.here:
        yield Branch((rule("the node not to lead", sight.who != NODE, "TC-PEER-03"),), state)
    else:
        row = "TC-ELECT-08" if state.quorum else "TC-STEP-03" if sight.term == state.was else "TC-STEP-05"
        voted = state.slot.holder if state.slot else ""
        rules = (
            rule("no mere vote", not voted or sight.record != voted, "TC-ELECT-04"),
            rule("no valid leader", not sight.who, row),
            # Said apart, so that a node that leads wrongly is rather compared with one that leads.
            rule("least of all the node", sight.who != NODE, row),
        )
        yield Branch(rules, state)


def _itself(state: State, seen: Seen, spans: Spans) -> Branch[State]:
    sight: Shown = seen.what
    term = f"term {state.lead}" if state.lead else f"a term above {state.floor}"
    went_on = sight.term == state.was and seen.sent <= state.free.hi + spans.leader_ttl / 3 + spans.tolerance
    held = sight.term == state.lead if state.lead else sight.term > state.floor or went_on
    rules = [
        in_time("the node leads", sight.who == NODE, "TC-STEP-02"),
        in_time(term, held, "TC-ELECT-04"),
        rule("its node-id as leader_id", sight.sound, "TC-DATA-02"),
        rule("a lease of one leader TTL", sight.left <= spans.leader_ttl + spans.tolerance, "TC-STEP-01"),
    ]
    who, reported = state.asked
    if reported and not state.lead:
        rules.append(rule(f"a term above {reported}, which {who} reports", sight.term > reported, "TC-ELECT-01"))
    elected = replace(state, lead=sight.term, was=0, asked=("", 0), floor=max(state.floor, sight.term))
    return Branch(tuple(rules), elected)


def _followed(sight: Shown, slot: Slot) -> tuple[Rule, ...]:
    return (
        rule(f"{slot.holder} leads", sight.who == slot.holder and sight.sound, "TC-ELECT-08"),
        rule(f"term {slot.term}", sight.term == slot.term, "TC-ELECT-08"),
    )
