"""What each call through one of two nodes leads to at both, and what each node shows."""

from collections.abc import Iterator

from holdfast.check.walk.vocabulary import Branch, Command, Seen
from holdfast.conformance.lockd.walks.cluster.state import NODES, Cluster, other
from holdfast.conformance.lockd.walks.registry import FAILED
from holdfast.conformance.lockd.walks.rules import ACTIVE, STALE, accepted, lasts, refusal, turned_away
from holdfast.conformance.lockd.walks.sights import Asked, Changed, Decided, Listed, Registered, Shown
from holdfast.conformance.lockd.walks.spans import Spans
from holdfast.conformance.lockd.walks.state import STRANGER, Decision
from holdfast.conformance.shared.walks import in_time, rule, span_of

Branches = Iterator[Branch[Cluster]]


def announce(state: Cluster, command: Command, seen: Seen, spans: Spans) -> Branches:
    sight: Listed = seen.what
    after = state.with_stranger(command.get("node"), span_of(seen))
    until = lasts(sight.answer, seen, spans.membership_ttl, spans.tolerance, "TC-MEMBER-03")
    yield Branch((accepted(sight.answer, "TC-MEMBER-01"), until), after)


def leave(state: Cluster, command: Command, seen: Seen, _spans: Spans) -> Branches:
    sight: Listed = seen.what
    yield Branch((accepted(sight.answer, "TC-LEAVE-01"),), state.with_stranger(command.get("node"), None))


def change(state: Cluster, command: Command, seen: Seen, _spans: Spans) -> Branches:
    """A registry change through one node: at both or at neither; a replica is meant for that node alone."""
    changed: Changed = seen.what
    node, add = command.get("node"), command.name == "register"
    pair = command.get("backend"), command.get("endpoint")
    here = state.with_pair(node, pair, add=add)
    if command.flag("replica"):
        yield Branch((accepted(changed.answer, "TC-RM-10"),), here)
        return
    same = here == state
    blocked = state.stranger(node) is not None
    if blocked:
        failed = changed.answer.status == 502 and changed.answer.code == FAILED
        yield Branch((rule(f"502 {FAILED}", failed, "TC-RM-05"),), state)
    if not blocked:
        yield Branch((accepted(changed.answer, "TC-RM-04#2"),), here.with_pair(other(node), pair, add=add))
    if same:  # one that changes nothing here may end before it asks anybody
        yield Branch((accepted(changed.answer, "TC-RM-08"),), state)


def decide(state: Cluster, command: Command, seen: Seen, _spans: Spans) -> Branches:
    """Whoever is asked, the leader decides; its refusal is passed back."""
    answer = seen.what.answer
    txn, way = command.get("txn"), command.get("as")
    row = "TC-TXN-01" if command.get("node") == state.leader else "TC-TXN-01#2"
    if dict(state.decided).get(txn, way) != way:
        yield Branch((refusal(answer, ("txn_conflict",), row),), state)
        return
    said = rule(f"state {way}", answer.fields.get("state") == way, row)
    yield Branch((accepted(answer, row), said), state.with_decided(txn, way))


def apply(state: Cluster, command: Command, seen: Seen, _spans: Spans) -> Branches:
    sight: Decided = seen.what
    node, txn, way = command.get("node"), command.get("txn"), command.get("as")
    known = state.record(node, txn)
    if not sight.term:
        yield Branch((refusal(sight.answer, ("tc_term_required",), "TC-TXN-06"),), state)
    elif sight.term != state.term:
        yield Branch((refusal(sight.answer, (STALE,), "TC-TXN-06"),), state)
    elif known is not None and known.state != way:
        yield Branch((refusal(sight.answer, ("txn_conflict",), "TC-TXN-09"),), state)
    else:
        row = "TC-TXN-09" if known else "TC-TXN-06"
        yield Branch((accepted(sight.answer, row),), state.with_applied(node, txn, Decision(way, state.term)))


def replay(state: Cluster, command: Command, seen: Seen, _spans: Spans) -> Branches:
    """The leader alone holds a decision."""
    answer, decided = seen.what.answer, dict(state.decided).get(command.get("txn"))
    if command.get("node") != state.leader:
        yield Branch((refusal(answer, ("txn_not_found",), "TC-TXN-01#2"),), state)
    elif decided is None:
        yield Branch((refusal(answer, ("txn_not_found",), "TC-TXN-01"),), state)
    else:
        said = rule(f"state {decided}", answer.fields.get("state") == decided, "TC-TXN-01")
        yield Branch((accepted(answer, "TC-TXN-01"), said), state)


def lease(state: Cluster, command: Command, seen: Seen, _spans: Spans) -> Branches:
    """The stranger asks for what the leader holds."""
    asked: Asked = seen.what
    if command.name == "release":
        yield Branch((turned_away(asked.answer, "TC-LEAVE-11"),), state)
        return
    lower, same = asked.term < state.term, asked.term == state.term
    codes = (STALE,) if lower else (STALE, ACTIVE) if same else (ACTIVE,)
    yield Branch((refusal(asked.answer, codes, "TC-ELECT-05"),), state)


def shown(state: Cluster, _command: Command, seen: Seen, _spans: Spans) -> Branches:
    sight: Shown = seen.what
    same = (sight.who, sight.term) == (state.leader, state.term)
    rules = (
        in_time(f"{state.leader} leads in term {state.term}", same, "TC-ELECT-04#2"),
        rule("its node-id as leader_id", sight.sound, "TC-DATA-02"),
    )
    yield Branch(rules, state)


def listed(state: Cluster, command: Command, seen: Seen, _spans: Spans) -> Branches:
    sight: Listed = seen.what
    wanted = {*NODES, *([STRANGER] if state.stranger(command.get("node")) else [])}
    rules = (
        in_time("both nodes in the list", set(NODES) <= set(sight.names), "TC-LOOP-02"),
        rule("all members in the list", wanted <= set(sight.names), "TC-MEMBER-03"),
        rule("nobody else in the list", set(sight.names) <= wanted, "TC-MEMBER-05"),
        rule("a sorted list without repetitions", sight.tidy, "TC-MEMBER-04"),
    )
    yield Branch(rules, state)


def registered(state: Cluster, command: Command, seen: Seen, _spans: Spans) -> Branches:
    sight: Registered = seen.what
    wanted = state.registry(command.get("node"))
    rules = (
        rule("every registered pair", wanted <= set(sight.pairs), "TC-RM-04#2"),
        rule("no other pair", set(sight.pairs) <= wanted, "TC-RM-10#2"),
        rule("each pair once", len(sight.pairs) == len(set(sight.pairs)), "TC-RM-08"),
    )
    yield Branch(rules, state)
