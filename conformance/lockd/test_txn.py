"""Forwarding, term fencing and error codes (seed: Non-leader forwarding and term fencing; Error codes)."""

import time

import pytest

from holdfast.check.finding import Inconclusive, demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.client import Lockd
from holdfast.conformance.lockd.judge import demand_none, told
from holdfast.conformance.lockd.spy import refuses, spies
from holdfast.conformance.lockd.spy_cluster import leaderless, raised, spy_leader, spy_members
from holdfast.conformance.lockd.wire import ok, participant, refused, stale_term


@verifies("TC-TXN-01", isolation="quiet", nodes=1, waits="lease_settled_max")
async def test_a_leader_records_its_decision(lockd: Lockd) -> None:
    node, txn = lockd.lone, lockd.txn()
    await lockd.leads(node)
    answer = await lockd.call(wire.decide(txn, "commit"), node=node)
    expect(answer, ok(txn_id=txn, state="commit"), why="the leader's decision")
    answer = await lockd.call(wire.decide(txn, "rollback"), node=node)
    expect(answer, refused("txn_conflict"), why="the other decision for the same transaction")
    other = await lockd.call(wire.decide(lockd.txn(), "rollback"), node=node)
    expect(other, ok(state="rollback"), why="control: a fresh transaction")


@pytest.mark.parametrize("decided", ["commit", "rollback"])
@verifies("TC-TXN-01", isolation="quiet", nodes=1, waits="2*lease_settled_max")
async def test_a_decision_that_its_rm_takes_is_answered_with_its_state(lockd: Lockd, decided: str) -> None:
    node, (spy,), txn = lockd.lone, await spies(lockd, 1), lockd.txn()
    await lockd.leads(node)
    await lockd.arrange("TC-RM-03", wire.register("island-x", spy.endpoint), spy.identity, node=node)
    answer = await lockd.call(wire.decide(txn, decided, [participant("default", "k", "island-x")]), node=node)
    expect(answer, ok(txn_id=txn, state=decided), why="the leader's decision, which the RM has applied")


@verifies("TC-TXN-01", isolation="quiet", nodes=1, waits="3*lease_settled_max")
async def test_a_decision_is_forwarded_unchanged(lockd: Lockd, T: SpecTime) -> None:
    node, (spy,) = await spy_leader(lockd)
    txn, since = lockd.txn(), T.now()
    both = [participant("default", "k1", "island-x"), participant("default", "k2", "island-y")]
    until = int(time.time()) + 3600
    answer = await lockd.call(wire.decide(txn, "commit", both, expires=until), node=node)
    expect(answer, ok(txn_id=txn, state="commit"), why="the leader's answer comes back")
    calls = spy.got(wire.DECIDE, since=since)
    demand(len(calls) == 1, "one decision at the leader", told(calls))
    wanted = {"txn_id": txn, "state": "commit", "participants": both, "expires_at_unix": until}
    calls[0].says(wanted, "the forwarded decision")
    expect(await lockd.recorded(txn, node), refused("txn_not_found"), why="only the leader records")


@verifies("TC-TXN-01", part=2, isolation="quiet", waits="cluster_leader_max")
async def test_a_followers_decision_is_the_leaders(lockd: Lockd) -> None:
    _, leader = await lockd.cluster()
    leading = lockd.at(leader.endpoint)
    follower, txn = lockd.others(leading)[0], lockd.txn()
    answer = await lockd.call(wire.decide(txn, "commit"), node=follower)
    expect(answer, ok(txn_id=txn, state="commit"), why="a decision at a follower")
    answer = await lockd.call(wire.decide(txn, "rollback"), node=leading)
    expect(answer, refused("txn_conflict"), why="the other decision at the leader")
    expect(await lockd.recorded(txn, follower), refused("txn_not_found"), why="only the leader records")


async def _not_leader(lockd: Lockd, node: str, txn: str, endpoint: str, lease_ms: int) -> None:
    answer = await lockd.call(wire.decide(txn, "commit"), node=node)
    if answer.wall * 1000 > lease_ms:
        raise Inconclusive("the leader's lease was over before the answer came")
    expect(answer, refused("tc_not_leader", leader_endpoint=endpoint), why="the leader is unreachable")
    sent, seen = Moment(answer.sent, answer.sent), Moment(answer.received, answer.received)
    lockd.T.at_most("not_leader_answer_max", since=sent, seen=seen, what="the refusal")


@verifies("TC-TXN-02", isolation="quiet", nodes=1, waits="4*lease_settled_max + not_leader_answer_max")
async def test_an_unreachable_leader_is_named(lockd: Lockd) -> None:
    node, (spy,) = await spy_leader(lockd)
    txn = lockd.txn()
    await spy.close()
    lease = await spy.stop_leading()
    await _not_leader(lockd, node, txn, spy.endpoint, lease.expires_at)
    expect(await lockd.recorded(txn, node), refused("txn_not_found"), why="nothing is recorded")
    await spy.leave(node)
    await lockd.leads(node, above=lease.term, owner="TC-PEER-01")
    answer = await lockd.call(wire.decide(txn, "rollback"), node=node)
    expect(answer, ok(state="rollback"), why="the refused decision left nothing behind")


@verifies("TC-TXN-02", part=2, isolation="disruptive", waits="cluster_leader_max + 2*lease_settled_max")
async def test_a_killed_leader_is_named(lockd: Lockd, T: SpecTime) -> None:
    nodes, leader = await lockd.cluster()
    old = lockd.at(leader.endpoint)

    async def half_ahead() -> int | None:
        seen = await lockd.valid_leader(lockd.others(old)[0])
        return seen.expires_at if seen and seen.expires_at / 1000 - time.time() > T.min_lease_left else None

    lease, _ = await lockd.awaits("TC-STEP-01", half_ahead, "lease_settled_max", what="half of the lease ahead")
    await lockd.kill(old)
    follower, txn = lockd.others(old)[0], lockd.txn()
    await _not_leader(lockd, follower, txn, lockd.endpoint(old), lease)

    async def replaced() -> bool:
        return await lockd.one_leader(*lockd.others(old), above=leader.term) is not None

    await lockd.awaits("TC-ELECT-07", replaced, "lease_settled_max", what="a new leader")
    answer = await lockd.call(wire.decide(txn, "rollback"), node=follower)
    expect(answer, ok(state="rollback"), why=f"nothing of the refused decision is left on {len(nodes)} nodes")


@verifies("TC-TXN-03", isolation="quiet", nodes=1, waits="2*lease_settled_max")
async def test_without_a_leader_nothing_is_decided_or_applied(lockd: Lockd) -> None:
    leader, _ = await lockd.leads(lockd.lone)
    node, _ = await leaderless(lockd)
    txn = lockd.txn()
    answer = await lockd.call(wire.decide(txn, "commit"), node=node)
    expect(answer, refused("tc_unavailable"), why="a decision without a leader")
    expect(await lockd.recorded(txn, node), refused("txn_not_found"), why="nothing is recorded")
    answer = await lockd.call(wire.apply(lockd.txn(), "commit", term=leader.term), node=node)
    expect(answer, refused("tc_unavailable"), why="an apply with the last known term")


@verifies("TC-TXN-03", isolation="quiet", nodes=1, waits="3*lease_settled_max")
async def test_a_candidate_is_asked_for_no_decision(lockd: Lockd, T: SpecTime) -> None:
    """A vote names no leader, so there is nobody to forward to, and no term that an apply could carry."""
    node, (spy,) = await leaderless(lockd)
    since = T.now()
    ttl = int(T.probe_lease_ttl * 1000)
    granted = await lockd.vote(spy.node_id, 3000, ttl, node, endpoint=spy.endpoint, who=spy.identity)
    decided = await lockd.call(wire.decide(lockd.txn(), "commit"), node=node)
    applied = await lockd.call(wire.apply(lockd.txn(), "commit", term=granted.leader.term or 3000), node=node)
    expect(decided, refused("tc_unavailable"), why="a decision at a node that has voted, but knows no leader")
    expect(applied, refused("tc_unavailable"), why="an apply there, with the term of the vote")
    demand_none(spy.got(wire.DECIDE, since=since), "no decision forwarded to a mere candidate")


async def _outside(lockd: Lockd, node: str, T: SpecTime) -> None:
    async def refuses_to_decide() -> None:
        txn = lockd.txn()
        answer = await lockd.call(wire.decide(txn, "commit"), node=node)
        expect(answer, refused("tc_unavailable"), why="a decision outside the cluster")
        expect(await lockd.recorded(txn, node), refused("txn_not_found"), why="nothing is recorded")

    every = T.renew_interval / 10
    await lockd.throughout(refuses_to_decide, T.two_intervals, "a node outside the cluster", every=every)


@verifies("TC-TXN-04", isolation="quiet", nodes=1, waits="lease_settled_max + two_intervals + leave_reject_max")
async def test_a_node_that_has_left_does_not_decide(lockd: Lockd, T: SpecTime) -> None:
    node = lockd.lone
    await spy_members(lockd, node, 1)
    await lockd.leads(node)
    await lockd.goes(node)
    await _outside(lockd, node, T)


@verifies("TC-TXN-04", part=2, isolation="quiet", waits="cluster_leader_max + two_intervals + leave_reject_max")
async def test_a_node_that_has_left_its_cluster_does_not_decide(lockd: Lockd, T: SpecTime) -> None:
    nodes, _ = await lockd.cluster()
    await lockd.goes(nodes[0])
    await _outside(lockd, nodes[0], T)


@verifies("TC-TXN-05", isolation="quiet", nodes=1, waits="3*lease_settled_max")
async def test_the_leaders_refusal_is_passed_through(lockd: Lockd) -> None:
    node, (spy,) = await spy_leader(lockd)
    spy.on(wire.DECIDE, refuses("txn_conflict"))
    answer = await lockd.call(wire.decide(lockd.txn(), "commit"), node=node)
    expect(answer, wire.refused_with_status("txn_conflict"), why="the leader refuses")
    spy.script.pop(wire.DECIDE)
    answer = await lockd.call(wire.decide(lockd.txn(), "commit"), node=node)
    expect(answer, ok(state="commit"), why="control: the leader accepts")


@pytest.mark.parametrize("state", ["commit", "rollback"])
@verifies("TC-TXN-06", isolation="quiet", nodes=1, waits="3*lease_settled_max + rm_listed_max")
async def test_an_apply_needs_the_current_term(lockd: Lockd, state: str) -> None:
    node, _ = await spy_leader(lockd, 1000)
    one = [participant("default", "k", await lockd.backend_of(node))]
    for term, legal in (
        (None, (refused("tc_term_required"),)),
        (999, stale_term()),
        (1001, stale_term()),
        (1000, (ok(state=state),)),
    ):
        answer = await lockd.call(wire.apply(lockd.txn(), state, one, term=term), node=node)
        with lockd.context.collect():
            expect(answer, *legal, why=f"{state} with {_said(term)}, current term 1000")


def _said(term: int | None) -> str:
    return "no tc_term" if term is None else f"tc_term {term}"


async def _fenced(lockd: Lockd, node: str, old: int, new: int) -> None:
    one = [participant("default", "k", await lockd.backend_of(node))]
    stale = await lockd.call(wire.apply(lockd.txn(), "commit", one, term=old), node=node)
    expect(stale, *stale_term(), why=f"the former term {old} at {node}")
    current = await lockd.call(wire.apply(lockd.txn(), "commit", one, term=new), node=node)
    expect(current, ok(state="commit"), why=f"control: the current term {new} at {node}")


@verifies("TC-TXN-07", isolation="quiet", nodes=1, waits="4*lease_settled_max + rm_listed_max")
async def test_a_former_term_is_stale_after_a_change(lockd: Lockd) -> None:
    node, (spy,) = await spy_leader(lockd, 1000)
    one = [participant("default", "k", await lockd.backend_of(node))]
    answer = await lockd.call(wire.apply(lockd.txn(), "commit", one, term=1000), node=node)
    expect(answer, ok(state="commit"), why="control: the term while it is current")
    await spy.stop_leading()
    released = await lockd.call(wire.release(spy.node_id, 1000), spy.identity, node=node)
    with lockd.context.arranging("TC-LEAVE-11"):
        expect(released, ok(released=True), why="the leader's release")
    await spy.lead(node, 2000)
    await _fenced(lockd, node, 1000, 2000)


@verifies("TC-TXN-07", part=2, isolation="disruptive", waits="cluster_leader_max + 2*lease_settled_max + rm_listed_max")
async def test_a_killed_leaders_term_is_stale_everywhere(lockd: Lockd) -> None:
    _, leader = await lockd.cluster()
    old = lockd.at(leader.endpoint)
    await lockd.kill(old)

    async def replaced() -> wire.Leader | None:
        return await lockd.one_leader(*lockd.others(old), above=leader.term)

    new, _ = await lockd.awaits("TC-ELECT-07", replaced, "lease_settled_max", what="a new leader")
    for node in lockd.others(old):
        await _fenced(lockd, node, leader.term, new.term)


@pytest.mark.parametrize("said", [None, 1], ids=["no term", "term 1"])
@verifies("TC-TXN-08", isolation="quiet", nodes=1, waits="4*lease_settled_max")
async def test_the_leaders_applies_carry_its_own_term(lockd: Lockd, T: SpecTime, said: int | None) -> None:
    node = lockd.lone
    spy, leader = await raised(lockd, node)
    await lockd.arrange("TC-RM-04", wire.register("island-x", spy.endpoint), spy.identity, node=node)
    txn, since = lockd.txn(), T.now()
    request = wire.decide(txn, "commit", [participant("default", "k", "island-x")], term=said)
    answer = await lockd.call(request, node=node)
    call = await spy.receives(wire.COMMIT, "not_leader_answer_max", since=since, what="the apply at the RM")
    wanted = {"txn_id": txn, "tc_term": leader.term, "target_backend_hash": "island-x"}
    call.says(wanted, f"the apply; the client said {_said(said)}")
    with lockd.context.arranging("TC-TXN-01"):
        expect(answer, ok(state="commit"), why="the leader's decision")


@verifies("TC-TXN-09", isolation="quiet", nodes=1, waits="lease_settled_max + rm_listed_max")
async def test_an_apply_repeats_and_a_contradiction_conflicts(lockd: Lockd) -> None:
    node, txn = lockd.lone, lockd.txn()
    leader, _ = await lockd.leads(node)
    one = [participant("default", "k", await lockd.backend_of(node))]
    for _ in range(2):
        answer = await lockd.call(wire.apply(txn, "commit", one, term=leader.term), node=node)
        expect(answer, ok(state="commit"), why="the same decision at the same term")
    answer = await lockd.call(wire.apply(txn, "rollback", one, term=leader.term), node=node)
    expect(answer, refused("txn_conflict"), why="the other decision")
