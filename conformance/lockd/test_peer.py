"""Peer set of the election (seed: Peer set selection): the member list, and seeds only while there is none."""

import time

from holdfast.check.finding import demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.client import Lockd
from holdfast.conformance.lockd.judge import demand_none, same_leader, shown
from holdfast.conformance.lockd.spy import spies
from holdfast.conformance.lockd.spy_cluster import spy_members, stepped_down
from holdfast.conformance.lockd.wire import Leader, refused

LEASE_CALLS = (wire.ACQUIRE, wire.RENEW)


@verifies("TC-PEER-01", isolation="quiet", nodes=1, waits="2*lease_settled_max + reelect_max + 2*next_tick_max")
async def test_quorum_follows_the_member_list(lockd: Lockd, T: SpecTime) -> None:
    node = lockd.lone
    await lockd.leads(node)
    joined = T.now()
    (spy,) = await spy_members(lockd, node, 1, grant=False)
    await stepped_down(lockd, node, [spy], joined, owner="TC-PEER-01")
    await spy.leave(node)
    left = T.now()
    await lockd.leads(node, "reelect_max", owner="TC-PEER-01")
    await T.sleep_until(left, T.next_tick_max, "the tick after the member left")
    since = T.now()
    await T.sleep(T.next_tick_max, "lease calls that must not come")
    late = [call for path in LEASE_CALLS for call in spy.got(path, since=since)]
    demand_none(late, "no lease call to a member that has left")


def _dead(lockd: Lockd) -> str:
    return ",".join(lockd.closed_port() for _ in range(3))


@verifies("TC-PEER-01", part=2, isolation="disruptive", nodes=1, waits="next_tick_max + cluster_leader_max")
async def test_dead_seeds_do_not_pin_the_quorum(lockd: Lockd, T: SpecTime) -> None:
    node = lockd.lone
    await lockd.restart(node, join=f"{lockd.url(node)},{_dead(lockd)}")
    (spy,) = await spy_members(lockd, node, 1)
    await T.sleep(T.next_tick_max, "the member to count")
    leader, _ = await lockd.leads(node, "cluster_leader_max", owner="TC-PEER-01")
    await spy.receives(wire.RENEW, "reelect_max", where=lambda call: call.term == leader.term)


@verifies("TC-PEER-01", part=3, isolation="disruptive", nodes=2, waits="cluster_leader_max")
async def test_two_nodes_lead_in_spite_of_dead_seeds(lockd: Lockd) -> None:
    a, b = lockd.nodes[:2]
    join = f"{lockd.url(a)},{lockd.url(b)},{_dead(lockd)}"
    for node in (a, b):
        await lockd.restart(node, join=join)
    await lockd.agreed(a, b, owner="TC-PEER-01")


@verifies("TC-PEER-02", isolation="disruptive", nodes=1, waits="self_listed_max + leader_ttl")
async def test_a_booting_node_asks_its_seeds_before_it_elects_itself(lockd: Lockd, T: SpecTime) -> None:
    node, (spy,) = lockd.lone, await spies(lockd, 1)
    ttl = T.leader_ttl * 1000
    spy.report(lambda: Leader(spy.node_id, spy.endpoint, 50, int(time.time() * 1000 + ttl)))
    since = T.now()
    await lockd.restart(node, join=f"{lockd.url(node)},{spy.endpoint}")

    async def follows() -> bool:
        leader = await lockd.valid_leader(node)
        theirs = leader is None or leader.endpoint == spy.endpoint
        demand(theirs, f"no leader before {spy.endpoint}, which the seed reports", shown(leader))
        return leader is not None and leader.term == 50

    await lockd.comes(follows, "self_listed_max", what="the leader that the seed reports")
    demand(spy.got(wire.LEADER, since=since), "the seed to be asked for a leader", "no GET /v1/tc/leader there")


async def _is_off(lockd: Lockd, node: str, T: SpecTime) -> None:
    vote = wire.acquire("stranger", lockd.url(node), 5000, int(T.probe_lease_ttl * 1000))

    async def refuses() -> None:
        for request in (wire.leader(), vote):
            answer = await lockd.call(request, node=node)
            expect(answer, refused("tc_unavailable"), why=f"{request.path} outside the list")

    await lockd.throughout(refuses, T.two_intervals, "a node outside the member list", every=T.renew_interval / 10)


@verifies("TC-PEER-03", isolation="quiet", nodes=1, waits="lease_settled_max + two_intervals + leave_reject_max")
async def test_a_node_outside_the_list_neither_asks_nor_votes(lockd: Lockd, T: SpecTime) -> None:
    node = lockd.lone
    (spy,) = await spy_members(lockd, node, 1)
    await lockd.leads(node)
    await lockd.goes(node)
    since = T.now()
    await _is_off(lockd, node, T)
    late = [call for path in LEASE_CALLS for call in spy.got(path, since=since)]
    demand_none(late, "no vote request or renewal of a node outside the list")


@verifies("TC-PEER-03", part=2, isolation="quiet", waits="cluster_leader_max + two_intervals + leave_reject_max")
async def test_an_excluded_node_leaves_the_others_alone(lockd: Lockd, T: SpecTime) -> None:
    _, leader = await lockd.cluster()
    follower, *_ = lockd.others(lockd.at(leader.endpoint))
    await lockd.goes(follower)
    await _is_off(lockd, follower, T)
    for node in lockd.others(follower):
        same_leader(await lockd.valid_leader(node), leader, f"leader and term at {node}")
