"""Renewal, step-down and quorum loss (seed: Renewal; Step-down and quorum loss)."""

import time

import pytest

from holdfast.check.finding import Finding, Inconclusive, demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.client import Lockd
from holdfast.conformance.lockd.judge import demand_none, names, same_leader, shown
from holdfast.conformance.lockd.membership import per_interval
from holdfast.conformance.lockd.quorum import nobody_leads, survivor_leads
from holdfast.conformance.lockd.spy import BROKEN, Spy
from holdfast.conformance.lockd.spy_cluster import spy_leader, spy_members
from holdfast.conformance.lockd.wire import Answer, Leader, ok, refused
from holdfast.conformance.shared.stub import Reply


async def _lease_grows(lockd: Lockd, node: str, T: SpecTime) -> None:
    first = await lockd.valid_leader(node)
    ends: list[int] = []
    shortest, began = [T.leader_ttl], T.now()

    async def look() -> None:
        seen = await lockd.valid_leader(node)
        if seen is None or first is None:
            raise Finding(["a valid leader"], "none", f"at {node}")
        same_leader(seen, first, "renewals keep leader and term")
        shortest[0] = min(shortest[0], seen.expires_at / 1000 - time.time())
        ends.append(seen.expires_at)

    await lockd.throughout(look, T.four_leader_ttl, "the leader's lease", every=T.renew_interval / 10)
    values = [str(end) for end in sorted(set(ends))]
    demand(ends == sorted(ends), "an expires_at that only grows", names(str(end) for end in ends))
    demand(len(values) > 3, "more than three values of expires_at", names(values), "in four leader leases")
    short, held = T.min_lease_left - shortest[0], T.held_back(began)
    if short > held:
        lockd.context.warn(f"min_lease_left: the lease had only {shortest[0]:.2f} s left")
    elif short > 0:
        raise Inconclusive(f"min_lease_left: {shortest[0]:.2f} s left, but the machine delayed it by {held:.2f} s")


@verifies("TC-STEP-01", isolation="quiet", nodes=1, waits="lease_settled_max + 7*renew_interval")
async def test_the_leader_renews_every_third_of_its_lease(lockd: Lockd, T: SpecTime) -> None:
    node = lockd.lone
    (spy,) = await spy_members(lockd, node, 1)
    leader, _ = await lockd.leads(node)
    await spy.receives(wire.RENEW, "lease_settled_max", what="the first renewal")
    calls = await per_interval(spy, wire.RENEW, 5, period="renew_interval", tolerance="renew_tolerance_percent")
    wanted = {"leader_id": leader.id, "term": leader.term, "ttl_ms": round(T.leader_ttl * 1000)}
    for call in calls:
        call.says(wanted, "a renewal")


@verifies("TC-STEP-01", isolation="quiet", nodes=1, waits="2*lease_settled_max + four_leader_ttl")
async def test_renewals_move_the_expiry_and_nothing_else(lockd: Lockd, T: SpecTime) -> None:
    node = lockd.lone
    (spy,) = await spy_members(lockd, node, 1)
    await lockd.leads(node)
    await spy.receives(wire.RENEW, "lease_settled_max", what="the first renewal")
    await _lease_grows(lockd, node, T)


@verifies("TC-STEP-01", part=2, isolation="quiet", waits="cluster_leader_max + four_leader_ttl")
async def test_a_follower_sees_the_renewals(lockd: Lockd, T: SpecTime) -> None:
    _, leader = await lockd.cluster()
    await _lease_grows(lockd, lockd.others(lockd.at(leader.endpoint))[0], T)


async def _leads_with(lockd: Lockd, count: int) -> tuple[str, list[Spy], Leader]:
    """Returns a lone node that leads, and its `count` granting spies, each of which has got a renewal."""
    node = lockd.lone
    made = await spy_members(lockd, node, count)
    await lockd.leads(node)
    since = lockd.T.now()
    for spy in made:
        await spy.awaits("TC-STEP-01", wire.RENEW, "lease_settled_max", since=since, what="a renewal")
    leader, _ = await lockd.leads(node)
    return node, made, leader


@verifies("TC-STEP-02", isolation="quiet", nodes=1, waits="2*lease_settled_max + three_leader_ttl")
async def test_a_minority_of_failed_renewals_changes_nothing(lockd: Lockd, T: SpecTime) -> None:
    node, made, leader = await _leads_with(lockd, 3)
    made[0].refuse_votes()
    since = T.now()

    async def still() -> None:
        same_leader(await lockd.valid_leader(node), leader, "one of three peers refuses")

    await lockd.throughout(still, T.three_leader_ttl, "the leader with a quorum", every=T.renew_interval / 10)
    with lockd.context.arranging("TC-STEP-01"):
        demand(made[0].got(wire.RENEW, since=since), f"control: a renewal that {made[0].name} refuses", "none")


def _stop_granting(made: list[Spy]) -> Moment:
    """Lets all spies refuse from now on; returns the last moment at which a renewal may have succeeded."""
    for spy in made:
        spy.refuse_votes()
    return Moment.now()


@verifies("TC-STEP-03", isolation="quiet", nodes=1, waits="2*lease_settled_max + lease_silent_max + leader_ttl")
async def test_a_leader_without_renewals_falls_silent_at_expiry(lockd: Lockd, T: SpecTime) -> None:
    node, made, _ = await _leads_with(lockd, 3)
    await lockd.decides(node, "control: it leads")
    last = _stop_granting(made)
    # A renewal round that had begun ends a little later, and its lease counts from its end.
    await T.sleep_until(last, T.lease_silent_max, "the last lease to end")
    await _silent(lockd, node, T.leader_ttl)


@verifies("TC-STEP-03", isolation="quiet", nodes=1, waits="4*lease_settled_max")
async def test_a_lapsed_leadership_is_not_taken_up_again(lockd: Lockd) -> None:
    """The peers grant again as soon as the lease has lapsed: whoever leads then does it in a later term.

    They do not renew what has lapsed, as no sound peer does; the leader must not count on its own slot alone.
    """
    node, made, leader = await _leads_with(lockd, 2)
    _stop_granting(made)
    await lockd.without_leader(node)
    for spy in made:
        spy.grant_votes()
    again, _ = await lockd.leads(node, owner="TC-STEP-03")
    demand(again.term > leader.term, f"a term above {leader.term}, whose lease has lapsed", again.describe())


async def _silent(lockd: Lockd, node: str, seconds: float) -> None:
    async def nobody() -> None:
        leader = await lockd.lasting_leader(node)
        demand(leader is None, f"no leader at {node} without renewals", shown(leader))
        answer = await lockd.call(wire.decide(lockd.txn(), "commit"), node=node)
        expect(answer, refused("tc_unavailable"), why="a decision without renewals")

    await lockd.throughout(nobody, seconds, "a leader without quorum")


@verifies("TC-STEP-03", part=2, isolation="disruptive", waits="cluster_leader_max + 2*lease_settled_max")
async def test_a_leader_without_followers_falls_silent(lockd: Lockd, T: SpecTime) -> None:
    _, leader = await lockd.cluster()
    old = lockd.at(leader.endpoint)
    for node in lockd.others(old):
        killed = await lockd.kill(node)
    await T.sleep_until(killed, T.lease_settled_max, "the last lease to end")
    await _silent(lockd, old, T.renew_interval)


@verifies("TC-STEP-04", isolation="quiet", nodes=1, waits="2*lease_settled_max + released_max")
async def test_a_leader_that_steps_down_releases_its_leases(lockd: Lockd) -> None:
    _, made, leader = await _leads_with(lockd, 2)
    last = _stop_granting(made)
    for spy in made:
        call = await spy.receives(wire.RELEASE, "released_max", since=last, where=lambda call: call.term == leader.term)
        call.says({"leader_id": leader.id}, "the released lease")


@pytest.mark.parametrize("trouble", ["refuses", "hangs"])
@verifies("TC-STEP-04", isolation="quiet", nodes=1, waits="2*lease_settled_max + released_max")
async def test_a_failing_release_does_not_stop_the_step_down(lockd: Lockd, trouble: str) -> None:
    await _steps_down_in_spite_of(lockd, trouble)


async def _steps_down_in_spite_of(lockd: Lockd, trouble: str) -> tuple[str, list[Spy], Moment]:
    node, made, leader = await _leads_with(lockd, 2)
    for spy in made:
        spy.on(wire.RELEASE, BROKEN if trouble == "refuses" else Reply(200, hold=lockd.T.release_hang))
    last = _stop_granting(made)

    async def stepped_down() -> bool:
        seen = await lockd.valid_leader(node)
        return seen is None or seen.term != leader.term

    _, seen = await lockd.comes(stepped_down, "released_max", since=last, what="the step-down")
    return node, made, seen


@verifies("TC-STEP-04", part=2, isolation="quiet", nodes=1, waits="2*lease_settled_max + 2*released_max")
async def test_a_failed_release_is_logged(lockd: Lockd, T: SpecTime) -> None:
    node, made, seen = await _steps_down_in_spite_of(lockd, "refuses")
    ends = [spy.endpoint for spy in made]

    async def logged() -> bool:
        lines = [line.lower() for line in lockd.log_of(node) if "release" in line.lower()]
        return any("error" in line or "fail" in line or any(end in line for end in ends) for line in lines)

    await T.until(logged, give_up=T.never("released_max"), since=seen, what="a log line about the failed release")


async def _vanish(node: str, made: list[Spy]) -> Moment:
    """Lets all spies announce themselves once more and close their ports, without a leave; returns when."""
    for spy in made:
        spy.fall_silent()
        await spy.announce(node)
    for spy in made:
        closed = await spy.close()
    return closed


@pytest.mark.parametrize("who", ["node", "spy"])
@verifies("TC-STEP-05", isolation="quiet", nodes=1, waits="4*lease_settled_max + survivor_leads_max")
async def test_without_a_quorum_of_the_list_nobody_leads(lockd: Lockd, who: str) -> None:
    if who == "node":
        node, made, _ = await _leads_with(lockd, 2)
    else:
        node, made = await spy_leader(lockd, 1000, count=2)
        await made[0].stop_leading()
        for spy in made:
            spy.grant_votes()
    closed = await _vanish(node, made)
    await nobody_leads(lockd, node, closed)
    await survivor_leads(lockd, node, closed)


@pytest.mark.parametrize("survivor", ["leader", "follower"])
@verifies("TC-STEP-05", part=2, isolation="disruptive", waits="cluster_leader_max + survivor_leads_max")
@verifies("TC-TXN-03", part=2, isolation="disruptive")
async def test_a_single_survivor_waits_for_the_list(lockd: Lockd, survivor: str) -> None:
    _, leader = await lockd.cluster()
    old = lockd.at(leader.endpoint)
    kept = old if survivor == "leader" else lockd.others(old)[0]
    await lockd.introduce(*lockd.nodes)
    for node in lockd.others(kept):
        killed = await lockd.kill(node)
    await lockd.T.sleep_until(killed, lockd.T.no_leader_from, "the last leader lease to end")
    with lockd.context.about("TC-TXN-03"):
        txn = lockd.txn()
        answer = await lockd.call(wire.decide(txn, "commit"), node=kept)
        expect(answer, refused("tc_unavailable"), why="a decision without a leader")
        expect(await lockd.recorded(txn, kept), refused("txn_not_found"), why="nothing is recorded without a leader")
        late = await lockd.call(wire.apply(lockd.txn(), "commit", term=leader.term), node=kept)
        expect(late, refused("tc_unavailable"), why="an apply without a leader")
    with lockd.context.about("TC-STEP-05"):
        await nobody_leads(lockd, kept, killed)
        await survivor_leads(lockd, kept, killed)


@verifies("TC-STEP-06", isolation="quiet", nodes=1, waits="2*lease_settled_max + return_at + rejoin_max")
async def test_a_restored_quorum_elects_at_a_higher_term(lockd: Lockd, T: SpecTime) -> None:
    node, made, leader = await _leads_with(lockd, 2)
    closed = await _vanish(node, made)
    await T.sleep_until(closed, T.return_at, "the return of one member")
    back = made[0]
    await back.open()
    returned = T.now()
    await back.join(node)

    async def leads() -> bool:
        seen = await lockd.valid_leader(node)
        return seen is not None and seen.endpoint == lockd.endpoint(node) and seen.term > leader.term

    await lockd.comes(leads, "rejoin_max", since=returned, what=f"a term above {leader.term}")
    calls = [*back.got(wire.RENEW, since=returned), *back.got(wire.ACQUIRE, since=returned)]
    demand_none([call for call in calls if call.term <= leader.term], f"no lease call with the old term {leader.term}")


@verifies("TC-STEP-06", part=2, isolation="disruptive", waits="cluster_leader_max + return_at + rejoin_max")
async def test_a_returning_follower_restores_the_quorum(lockd: Lockd, T: SpecTime) -> None:
    _, leader = await lockd.cluster()
    old = lockd.at(leader.endpoint)
    followers = lockd.others(old)
    for node in followers:
        killed = await lockd.kill(node)
    await T.sleep_until(killed, T.return_at, "the return of one node")
    started = await lockd.restart(followers[0])

    async def agreed() -> Leader | None:
        return await lockd.one_leader(old, followers[0], above=leader.term)

    await lockd.comes(agreed, "rejoin_max", since=started, what=f"one leader above term {leader.term}")


async def _first_after_a_pause(lockd: Lockd, node: str, txn: str) -> Answer:
    """Pauses the node until its lease is over, with a decision waiting in its socket; returns the answer after it.

    A server that closes idle connections may close this one as it wakes, without an answer; then it is asked again.
    """
    T = lockd.T
    await lockd.leader(node)  # so that a connection is open
    await lockd.pause(node)
    try:
        await T.sleep(T.lease_settled_max, "the lease of the paused leader to end")
        deciding = lockd.beside(lockd.call(wire.decide(txn, "commit"), node=node))
        await T.sleep(T.clock_slack, "the decision to reach the node's socket")
    finally:
        await lockd.resume(node)
    answer = await deciding
    return answer if answer.answered else await lockd.call(wire.decide(txn, "commit"), node=node)


@verifies("TC-STEP-07", isolation="disruptive", nodes=1, waits="3*lease_settled_max")
async def test_a_paused_leader_does_not_decide_after_its_lease(lockd: Lockd, T: SpecTime) -> None:
    node, made, _ = await _leads_with(lockd, 1)
    await lockd.decides(node, "control: it leads")
    # While a renewal is pending the node's loop has to wait when it wakes; only the expiry can stop a decision then.
    made[0].on(wire.RENEW, Reply(503, {"error": "tc_unavailable"}, hold=2 * T.lease_settled_max))
    made[0].on(wire.ACQUIRE, Reply(409, {"error": "tc_lease_active"}, hold=T.held_answer))
    await made[0].awaits("TC-STEP-01", wire.RENEW, "lease_settled_max", since=T.now(), what="a renewal")
    txn = lockd.txn()
    answer = await _first_after_a_pause(lockd, node, txn)
    expect(answer, refused("tc_unavailable"), refused("tc_not_leader"), why="the first decision after the pause")
    expect(await lockd.recorded(txn, node), refused("txn_not_found"), why="nothing is recorded under the old lease")


@verifies("TC-STEP-07", part=2, isolation="disruptive", waits="cluster_leader_max + 2*lease_settled_max")
async def test_a_paused_leader_of_a_cluster_decides_nothing_itself(lockd: Lockd) -> None:
    _, leader = await lockd.cluster()
    old = lockd.at(leader.endpoint)
    txn = lockd.txn()
    answer = await _first_after_a_pause(lockd, old, txn)
    legal = refused("tc_unavailable"), refused("tc_not_leader"), ok(state="commit")
    expect(answer, *legal, why="the first decision after the pause")
    expect(await lockd.recorded(txn, old), refused("txn_not_found"), why="nothing is recorded under the old term")
