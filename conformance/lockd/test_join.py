"""Deployment model (seed: TC+RM everywhere, --join): one kind of server, and seeds that matter only at the start."""

from collections.abc import Sequence
from functools import partial

import pytest

from holdfast.check.finding import Finding, demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.client import Lockd
from holdfast.conformance.lockd.judge import demand_none, names
from holdfast.conformance.lockd.membership import per_interval, store_fails
from holdfast.conformance.lockd.spy import Call, Spy, spies
from holdfast.conformance.lockd.wire import no_vote, ok, refused
from holdfast.conformance.shared.stub import Reply


async def _serves_every_role(lockd: Lockd, node: str) -> None:
    for request in (wire.leader(), wire.members(), wire.backends()):
        expect(await lockd.call(request, node=node), ok(), why=request.path)
    apply = await lockd.call(wire.apply(lockd.txn(), "commit"), node=node)
    expect(apply, refused("tc_term_required"), why="an apply is asked for")
    vote = wire.acquire("stranger", lockd.url(node), 1, int(lockd.T.probe_lease_ttl * 1000))
    answer = await lockd.call(vote, node=node)
    expect(answer, ok(), *no_vote(), why="a vote is asked for")
    decision = await lockd.call(wire.decide(lockd.txn(), "commit"), node=node)
    expect(decision, ok(state="commit"), why="a decision is asked for")


async def _registers(lockd: Lockd, endpoint: str, at: str) -> None:
    async def listed() -> bool:
        return any(endpoint in backend.endpoints for backend in (await lockd.registered(at)).values())

    await lockd.comes(listed, "rm_listed_max", what=f"{endpoint} in the registry of {at}")


@verifies("TC-JOIN-01", isolation="quiet", nodes=1, waits="lease_settled_max + rm_listed_max")
async def test_a_node_is_coordinator_voter_and_resource_manager(lockd: Lockd) -> None:
    node = lockd.lone
    await lockd.leads(node)
    await _serves_every_role(lockd, node)
    await lockd.lists(node, lockd.endpoint(node), why="the node itself")
    await _registers(lockd, lockd.endpoint(node), node)


@verifies("TC-JOIN-01", part=2, isolation="quiet", waits="cluster_leader_max + rm_listed_max")
async def test_every_node_of_a_cluster_has_every_role(lockd: Lockd) -> None:
    nodes, _ = await lockd.cluster()
    for node in nodes:
        await _serves_every_role(lockd, node)
    await lockd.parallel([partial(_registers, lockd, lockd.endpoint(one), other) for one in nodes for other in nodes])


@verifies("TC-JOIN-02", isolation="disruptive", nodes=1, waits="3*three_intervals + 2*next_tick_max")
async def test_join_endpoints_serve_only_while_nobody_else_is_known(lockd: Lockd, T: SpecTime) -> None:
    node, (seed, member) = lockd.lone, await spies(lockd, 2)
    me = lockd.endpoint(node)
    await lockd.restart(node, join=f"{me},{seed.endpoint}")

    calls = await per_interval(seed, wire.ANNOUNCE, 3, sender=lockd.node_id(node))
    for call in calls:
        call.says({"self_endpoint": me}, "an announce to the join endpoint")
    expect(names(await lockd.members(node)), me, why="a join endpoint that never announced is no member")

    await member.join(node)
    await member.awaits("TC-LOOP-02", wire.ANNOUNCE, "next_tick_max", what="the member's first announce")
    since = T.now()
    await per_interval(member, wire.ANNOUNCE, 3, sender=lockd.node_id(node), since=since)
    demand_none(seed.got(wire.ANNOUNCE, since=since), "no announce to the seed while another member is known")
    await member.leave(node)
    await seed.receives(wire.ANNOUNCE, "next_tick_max", what="the seed's announce after the last member left")


@verifies("TC-JOIN-02", part=2, isolation="disruptive", nodes=1, waits="4*three_intervals")
async def test_join_endpoints_serve_while_the_list_cannot_be_read(lockd: Lockd, T: SpecTime) -> None:
    node, (seed, member) = lockd.lone, await spies(lockd, 2)
    with store_fails(lockd) as fault:
        await lockd.restart(node, join=f"{lockd.url(node)},{seed.endpoint}", fault_hook=str(fault.file))
        await member.join(node)
        await member.awaits("TC-LOOP-02", wire.ANNOUNCE, "next_tick_max")
        quiet = T.now()
        await member.awaits("TC-LOOP-02", wire.ANNOUNCE, "next_tick_max", since=quiet)
        demand_none(seed.got(wire.ANNOUNCE, since=quiet), "control: no announce to the seed while the list is there")
        fault.begin()
        since = T.now()
        await seed.receives(wire.ANNOUNCE, "next_tick_max", since=since)
        await per_interval(seed, wire.ANNOUNCE, 2, sender=lockd.node_id(node), since=since)


@verifies("TC-JOIN-03", isolation="disruptive", nodes=1, waits="member_expiry_settled + 2*next_tick_max")
async def test_one_reachable_coordinator_is_enough_to_join(lockd: Lockd, T: SpecTime) -> None:
    node, (target, stranger) = lockd.lone, await spies(lockd, 2)
    since = T.now()
    await lockd.restart(node, join=target.endpoint)
    _announced(target.got(wire.ANNOUNCE, since=since), target)
    await per_interval(target, wire.ANNOUNCE, 3, sender=lockd.node_id(node))

    await target.join(node)
    await lockd.lists(node, target.endpoint, why="it has announced itself")
    await stranger.join(node)
    await stranger.receives(wire.ANNOUNCE, "next_tick_max", what="the announce to a member of no join list")


@verifies("TC-JOIN-03", part=2, isolation="disruptive", nodes=2, waits="next_tick_max + member_expiry_settled")
async def test_two_nodes_meet_through_one_join_endpoint(lockd: Lockd, T: SpecTime) -> None:
    a, c = lockd.nodes[:2]
    await lockd.kill(c)
    await lockd.restart(a, join=lockd.url(a))
    started = await lockd.restart(c, join=lockd.url(a))
    await lockd.lists(a, lockd.endpoint(c), why="the joiner has started")

    async def listed() -> bool:
        return lockd.endpoint(a) in await lockd.members(c)

    await lockd.comes(listed, "next_tick_max", what="the joiner to list its target")
    await T.sleep_until(started, T.member_expiry_settled, "every lease from the start to expire")
    both = names(sorted((lockd.endpoint(a), lockd.endpoint(c))))
    for node in (a, c):
        expect(names(sorted(await lockd.members(node))), both, why=f"the list of {node} after the first leases")


@verifies("TC-JOIN-04", isolation="disruptive", waits="converge_max")
async def test_joining_through_one_member_converges_everywhere(lockd: Lockd) -> None:
    a, *rest = lockd.nodes
    for node in lockd.nodes:
        await lockd.kill(node)
    await lockd.restart(a, join=lockd.url(a))
    for node in rest:
        await lockd.restart(node, join=lockd.url(a))
    wanted = sorted(lockd.endpoint(node) for node in lockd.nodes)

    async def equal() -> bool:
        return all([sorted(await lockd.members(node)) == wanted for node in lockd.nodes])

    await lockd.comes(equal, "converge_max", what="equal lists on all nodes")


@verifies("TC-JOIN-05", isolation="disruptive", nodes=1, waits="self_listed_max")
async def test_startup_announces_before_it_serves(lockd: Lockd, T: SpecTime) -> None:
    node, (spy,) = lockd.lone, await spies(lockd, 1)
    since = T.now()
    await lockd.restart(node, join=spy.endpoint)
    calls = spy.got_from(lockd.node_id(node), wire.ANNOUNCE, since=since)
    _announced(calls, spy)
    calls[0].says({"self_endpoint": lockd.endpoint(node)}, "self_endpoint is the node's own")
    await lockd.restart(node, join=f"{lockd.closed_port()},{spy.endpoint}")
    expect(await lockd.call(wire.members(), node=node), ok(), why="one accepting target is enough")


def _announced(calls: Sequence[Call], spy: Spy) -> None:
    demand(calls, f"an announce at {spy.name} by the time that the node serves", "none")


async def _does_not_start(lockd: Lockd, node: str, join: str) -> None:
    ending, seen = await lockd.refuses_to_start(node, join=join)
    if not ending or "status 0 " in ending:
        raise Finding(["an end with an error"], ending or "the node serves", f"--join {join}")
    lockd.T.at_most("startup_exit_max", since=Moment(seen.lo, seen.lo), seen=lockd.T.now(), what="the failed start")


@pytest.mark.parametrize("status", [403, 503])
@verifies("TC-JOIN-05", isolation="disruptive", nodes=1, waits="startup_exit_max")
async def test_an_error_status_is_no_acceptance(lockd: Lockd, status: int) -> None:
    node, (spy,) = lockd.lone, await spies(lockd, 1)
    spy.on(wire.ANNOUNCE, Reply(status, {"error": "tc_forbidden" if status == 403 else "tc_unavailable"}))
    await _does_not_start(lockd, node, spy.endpoint)
    demand(spy.got(wire.ANNOUNCE), f"an announce at {spy.name} during the start", "none")
    spy.script.clear()
    await lockd.restart(node, join=spy.endpoint)
    expect(await lockd.call(wire.members(), node=node), ok(), why="control: the same target accepts")


@verifies("TC-JOIN-05", isolation="disruptive", nodes=1, waits="startup_exit_max")
async def test_startup_fails_hard_when_no_join_target_is_there(lockd: Lockd) -> None:
    await _does_not_start(lockd, lockd.lone, f"{lockd.closed_port()},{lockd.closed_port()}")


@verifies("TC-JOIN-05", part=2, isolation="disruptive", nodes=2, waits="self_listed_max")
async def test_a_live_node_beside_a_dead_seed_lets_the_joiner_in(lockd: Lockd) -> None:
    a, b = lockd.nodes[:2]
    await lockd.kill(b)
    await lockd.restart(a, join=lockd.url(a))
    await lockd.restart(b, join=f"{lockd.closed_port()},{lockd.url(a)}")
    await lockd.lists(a, lockd.endpoint(b), why="the joiner has started")


@pytest.mark.parametrize("seeds", ["self", "none"])
@verifies("TC-JOIN-06", isolation="disruptive", nodes=1, waits="first_leader_max")
async def test_the_first_node_boots_alone_and_leads(lockd: Lockd, seeds: str) -> None:
    node = lockd.lone
    join = f"{lockd.url(node)},{lockd.closed_port()}" if seeds == "self" else ""
    await lockd.restart(node, owner="TC-JOIN-06", join=join)
    leader, _ = await lockd.leads(node, "first_leader_max", owner="TC-JOIN-06")
    expect(names(await lockd.members(node)), lockd.endpoint(node), why="the first node lists itself")
    demand(leader.term >= 1, "a term of 1 or higher", leader.describe())


async def _survives(lockd: Lockd, node: str, T: SpecTime) -> None:
    async def serves() -> None:
        expect(await lockd.call(wire.members(), node=node), ok(), why="the join check applies at startup only")

    await lockd.throughout(serves, T.two_membership_ttl, "the node without its join target", every=T.renew_interval / 5)


@verifies("TC-JOIN-07", isolation="disruptive", nodes=1, waits="two_membership_ttl")
async def test_a_node_outlives_its_join_target(lockd: Lockd, T: SpecTime) -> None:
    node, (spy,) = lockd.lone, await spies(lockd, 1)
    await lockd.restart(node, join=spy.endpoint)
    with lockd.context.arranging("TC-JOIN-05"):
        _announced(spy.got_from(lockd.node_id(node), wire.ANNOUNCE), spy)
    await spy.close()
    await _survives(lockd, node, T)


@verifies("TC-JOIN-07", part=2, isolation="disruptive", nodes=2, waits="two_membership_ttl")
async def test_a_node_outlives_the_real_node_that_it_joined(lockd: Lockd, T: SpecTime) -> None:
    a, c = lockd.nodes[:2]
    await lockd.restart(a, join=lockd.url(a))
    await lockd.restart(c, join=lockd.url(a))
    await lockd.kill(a)
    await _survives(lockd, c, T)
