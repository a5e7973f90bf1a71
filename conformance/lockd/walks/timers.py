"""What the node does by itself, and when: leases lapse, elections are won, a leader without a quorum steps down.

Names and numbers are the catalogue's. Two timers are the model's own: when a change has surely reached the node's
election, and when the leases from before it have surely run out. They are sharp and nobody waits for them.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from holdfast.check.walk.vocabulary import Timer
from holdfast.conformance.lockd.walks.spans import Spans
from holdfast.conformance.lockd.walks.state import GONE, PROBE, Member, Report, Slot, State
from holdfast.conformance.shared.walks import Span


def timers(state: State, spans: Spans) -> Iterator[Timer[State]]:
    for who, member in state.members:
        yield _membership(state, who, member, spans)
    if state.slot is not None:
        yield _lease(state, state.slot, spans)
    if state.report is not None:
        yield from _report(state, state.report, spans)
    if state.here:
        yield from _leadership(state, spans)
    if state.unsettled:
        yield _sharp("the change to reach the election", state.settles, partial(replace, state, unsettled=False))
    elif state.shaky and state.quorum:
        until = state.settles + spans.stepped_down
        yield _sharp("the leases from before to run out", until, partial(replace, state, shaky=False))


def _membership(state: State, who: str, member: Member, spans: Spans) -> Timer[State]:
    def ends(lo: float, hi: float) -> list[State]:
        return [state.with_member(who, None).after(state, Span(lo, hi), spans.lag)]

    return Timer(
        f"the end of {who}'s membership",
        "membership",
        member.since.lo + spans.membership_ttl - spans.tolerance,
        member.since.hi + spans.membership_ttl + spans.tolerance,
        ends,
        # No rows: the list tells at once who is missing or still there, and nearly anything else that a node does wrong
        # would be explained by a member that had lapsed early.
        about=(("who", who),),
    )


def _lease(state: State, slot: Slot, spans: Spans) -> Timer[State]:
    row = "TC-ELECT-08" if slot.led else "TC-ELECT-05"
    return Timer(
        f"the end of {slot.holder}'s {'lease' if slot.led else 'vote'}",
        "learned lease" if slot.learned else "lease" if slot.led else "vote",
        slot.since.lo + slot.ttl - spans.tolerance,
        slot.since.hi + slot.ttl + spans.tolerance,
        lambda lo, hi: [state.lapsed(Span(lo, hi))],
        (row,),
        (("who", slot.holder),),
    )


def _report(state: State, report: Report, spans: Spans) -> Iterator[Timer[State]]:
    """A node without a leader asks its peers for one. When it does is its own affair, so it may learn at any time."""
    slot = Slot(report.who, report.term, report.since, spans.leader_ttl, led=report.since.hi, learned=True)
    asks = state.here and state.lead is None and state.trouble(report.who) not in (PROBE, GONE)
    if asks and (state.slot is None or state.slot.term < report.term):

        def learned(_lo: float, hi: float) -> list[State]:
            floor = max(state.floor, report.term)
            return [replace(state.lapsed(report.since), slot=slot._replace(led=hi), floor=floor)]

        yield Timer(
            f"the node to learn that {report.who} leads",
            "learning",
            report.since.lo,
            math.inf,
            learned,
            waited_for=False,
        )

    def over(lo: float, hi: float) -> list[State]:
        asked = (report.who, report.term) if report.who in state.others and state.listed_by <= lo else ("", 0)
        free = Span(state.free.lo, max(state.free.hi, hi))
        return [replace(state, report=None, asked=asked if state.lead is None else ("", 0), free=free)]

    yield Timer(
        f"the end of {report.who}'s report",
        "report",
        report.since.lo + spans.leader_ttl - spans.tolerance,
        report.since.hi + spans.leader_ttl + spans.tolerance,
        over,
        waited_for=False,
    )


def _leadership(state: State, spans: Spans) -> Iterator[Timer[State]]:
    """What may happen and what has to are timers of two names: that the one has not come says nothing of the other."""
    if state.lead is None and state.slot is None and (state.quorum or state.unsettled):
        due = state.quorum and not state.unsettled and state.report is None
        yield Timer(
            f"{'the' if due else 'an'} election of the node",
            "election",
            state.free.lo,
            max(state.settles, state.free.hi) + spans.elected if due else math.inf,
            lambda _lo, _hi: [replace(state, lead=0, blocked=(0, 0.0))],
            ("TC-ELECT-03",),
            waited_for=due,
        )
    if state.lead is not None and state.shaky:
        due = not state.quorum and not state.unsettled
        yield Timer(
            f"{'the' if due else 'a'} step-down of the node",
            "step-down",
            0.0,
            state.settles + spans.stepped_down if due else math.inf,
            lambda lo, hi: [replace(state, lead=None, was=state.lead or 0, free=Span(lo, hi))],
            ("TC-STEP-03",),
            waited_for=due,
        )


def _sharp(name: str, at: float, then: Callable[[], State]) -> Timer[State]:
    return Timer(name, "", at, at, lambda _lo, _hi: [then()], waited_for=False)
