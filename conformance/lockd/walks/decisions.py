"""Decisions and their term fence (Non-leader forwarding and term fencing).

`t1` to `t3` are decided at the coordinator, `a1` and `a2` applied at the node as RM, so that what a coordinator makes
of what it has applied before, which the document leaves open, is not asked.
"""

from collections.abc import Iterator

from holdfast.check.walk.vocabulary import Branch, Command, Rule, Seen
from holdfast.conformance.lockd.walks.rules import STALE, UNAVAILABLE, accepted, refusal
from holdfast.conformance.lockd.walks.sights import Decided
from holdfast.conformance.lockd.walks.spans import Spans
from holdfast.conformance.lockd.walks.state import APPLIED, FAR, GONE, RM, SPIES, Decision, State
from holdfast.conformance.shared.walks import rule

Branches = Iterator[Branch[State]]
CONFLICT, MISSING = "txn_conflict", "txn_not_found"


def decide(state: State, command: Command, seen: Seen, _spans: Spans) -> Branches:
    sight: Decided = seen.what
    slot = state.slot
    if not state.here:
        yield Branch((refusal(sight.answer, (UNAVAILABLE,), "TC-TXN-04"),), state)
    elif state.lead is not None:
        yield from _by_itself(state, command, sight)
    elif slot is None or not slot.led:
        yield Branch((refusal(sight.answer, (UNAVAILABLE,), "TC-TXN-03"),), state)
    elif state.trouble(slot.holder) == GONE:
        named = rule(f"{slot.holder} named as leader", sight.leader == slot.holder, "TC-TXN-02")
        yield Branch((refusal(sight.answer, ("tc_not_leader",), "TC-TXN-02"), named), state)
    else:
        once = {each: int(each == slot.holder) for each in SPIES}
        forwarded = rule(f"one decision at {slot.holder}", dict(sight.forwarded) == once, "TC-TXN-01")
        yield Branch((accepted(sight.answer, "TC-TXN-01"), forwarded), state)


def _by_itself(state: State, command: Command, sight: Decided) -> Branches:
    txn, wanted = command.get("txn"), command.get("as")
    known = state.decision(txn)
    if known is not None and known.state != wanted:
        yield Branch((refusal(sight.answer, (CONFLICT,), "TC-TXN-01"),), state)
        return
    said = rule(f"state {wanted}", sight.answer.fields.get("state") == wanted, "TC-TXN-01")
    decided = state if known else state.with_decision(txn, Decision(wanted, state.lead or 0))
    rules = (accepted(sight.answer, "TC-TXN-01"), said)
    if txn == FAR and not state.reaches_rm:
        yield Branch((), decided)  # what a decision is worth that no RM can take is open
        yield Branch((), state)
    else:
        yield Branch((*rules, *((_fanned(state, sight),) if txn == FAR and not known else ())), decided)


def _fanned(state: State, sight: Decided) -> Rule:
    """The RM got the decision, in the leader's own term."""
    right = set(sight.applied) == {state.lead} if state.lead else bool(sight.applied)
    return rule(f"an apply at {RM} in the leader's term", right, "TC-TXN-08")


def apply(state: State, command: Command, seen: Seen, _spans: Spans) -> Branches:
    sight: Decided = seen.what
    slot = state.slot if state.slot and state.slot.led else None
    current = state.lead if state.lead is not None else slot.term if slot else None
    if current is None:
        yield Branch((refusal(sight.answer, (UNAVAILABLE,), "TC-TXN-03"),), state)
    elif not sight.term:
        yield Branch((refusal(sight.answer, ("tc_term_required",), "TC-TXN-06"),), state)
    elif current and sight.term != current:
        yield Branch((refusal(sight.answer, (STALE,), "TC-TXN-06"),), state)
    else:
        yield from _applied(state, command, sight)
        if not current:  # the node has just been elected, and nobody was told its term
            yield Branch((refusal(sight.answer, (STALE,), "TC-TXN-06"),), state)


def _applied(state: State, command: Command, sight: Decided) -> Branches:
    wanted, known = command.get("as"), state.decision(command.get("txn"))
    if known is None:
        done = state.with_decision(command.get("txn"), Decision(wanted, sight.term))
        yield Branch((accepted(sight.answer, "TC-TXN-06"),), done)
    elif known.state != wanted:
        yield Branch((refusal(sight.answer, (CONFLICT,), "TC-TXN-09"),), state)
    else:
        yield Branch((accepted(sight.answer, "TC-TXN-09"),), state)
        if known.term != sight.term:  # only the same term has to be accepted again
            yield Branch((refusal(sight.answer, (STALE, CONFLICT), "TC-TXN-09"),), state)


def replay(state: State, command: Command, seen: Seen, _spans: Spans) -> Branches:
    """Tells whether the node holds a record. Whether an RM tells its own, or one without a leader does, is open."""
    answer = seen.what.answer
    known = state.decision(command.get("txn"))
    if known is not None and command.get("txn") in APPLIED:
        yield Branch((), state)
        return
    if known is None:
        yield Branch((refusal(answer, (MISSING, *_open(state)), _recorder(state)),), state)
        return
    said = rule(f"state {known.state}", answer.fields.get("state") == known.state, "TC-TXN-01")
    yield Branch((accepted(answer, "TC-TXN-01"), said), state)
    if state.lead is None:
        yield Branch((refusal(answer, (UNAVAILABLE, "tc_not_leader"), "TC-TXN-01"),), state)


def _open(state: State) -> tuple[str, ...]:
    return (UNAVAILABLE,) if state.lead is None else ()


def _recorder(state: State) -> str:
    if state.lead is not None:
        return "TC-TXN-01"
    return "TC-TXN-02" if state.slot and state.slot.led else "TC-TXN-03" if state.here else "TC-TXN-04"
