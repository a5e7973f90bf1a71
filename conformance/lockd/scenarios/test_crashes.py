"""Nodes that are killed, stopped, paused or leave (C1 … C4, C9, C13, C14)."""

import asyncio

from holdfast.check.faults import Faults
from holdfast.check.finding import demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.client import Lockd
from holdfast.conformance.lockd.judge import names
from holdfast.conformance.lockd.membership import nowhere
from holdfast.conformance.lockd.quorum import handed_over, nobody_leads, survivor_leads, with_lease_left
from holdfast.conformance.lockd.scenarios.steps import (
    HASH,
    decide,
    decided_again,
    same_entries,
    succeeded,
    together_again,
)
from holdfast.conformance.lockd.wire import ok, participant, refused, stale_term
from holdfast.target.fault import Receipt

ROUNDS = 5


@verifies("TC-ELECT-07", part=2, isolation="disruptive", waits="cluster_leader_max + lease_settled_max + rejoin_max")
async def test_c01_leader_killed(lockd: Lockd, faults: Faults) -> None:
    """Nodes refuse to decide until the dead leader's lease has ended; then one of a later term decides."""
    _, leader = await lockd.cluster()
    old = lockd.at(leader.endpoint)
    survivors = lockd.others(old)
    async with faults.during("kill", old) as window:
        killed = Moment(window.asked, window.in_force)
        await decided_again(lockd, survivors, killed, "failover_p95_max")
        await succeeded(lockd, survivors, leader, "lease_settled_max", killed)
    await together_again(lockd, lockd.T.now())


@verifies("TC-LEAVE-10", part=4, isolation="disruptive", waits="cluster_leader_max + exit_max + rejoin_max")
async def test_c02_leader_terminated(lockd: Lockd, faults: Faults, T: SpecTime) -> None:
    """A stopping leader is dropped and replaced at once, long before its lease would have ended."""
    nodes, _ = await lockd.cluster()
    leader = await with_lease_left(lockd, nodes[0])
    old = lockd.at(leader.endpoint)
    survivors, asked = lockd.others(old), T.now()

    async def dropped() -> bool:
        return all([leader.endpoint not in await lockd.members(node) for node in survivors])

    dropping = lockd.beside(lockd.comes(dropped, "graceful_drop_max", since=asked, what="the peers to drop it"))
    following = lockd.beside(handed_over(lockd, survivors, leader, asked))
    async with faults.during("term", old):
        await asyncio.gather(dropping, following)
    await together_again(lockd, T.now())


@verifies("TC-LEAVE-10", part=3, isolation="disruptive", waits="cluster_leader_max + leave_ok_max + rejoin_max")
async def test_c03_leader_leaves(lockd: Lockd, faults: Faults, T: SpecTime) -> None:
    """A leave by API hands over at once; the node outside comes back by an announce."""
    nodes, _ = await lockd.cluster()
    leader = await with_lease_left(lockd, nodes[0])
    old, since = lockd.at(leader.endpoint), T.now()
    async with faults.stimulus("leave by API", old) as window:
        answer = await lockd.api_leave(old)
        window.receipts.append(Receipt(f"the leave: {answer.describe()}", answer.ok))
        await handed_over(lockd, lockd.others(old), leader, since)
    await lockd.returns(old)
    await together_again(lockd, T.now())


@verifies("TC-STEP-07", part=2, isolation="disruptive", waits="cluster_leader_max + 2*blackhole_max + heal_max")
async def test_c04_leader_paused(lockd: Lockd, faults: Faults, T: SpecTime) -> None:
    """A leader that was paused for its whole lease decides nothing under its old term when it resumes."""
    _, leader = await lockd.cluster()
    old, txn = lockd.at(leader.endpoint), lockd.txn()
    await lockd.leader(old)  # so that a connection is open
    async with faults.during("stop", old) as window:
        stopped = Moment(window.asked, window.in_force)
        # A stopped process takes connections and answers none, so every call to it runs into its timeout.
        new = await succeeded(lockd, lockd.others(old), leader, "blackhole_max", stopped)
        await T.sleep_until(stopped, T.lease_settled_max, "the lease of the paused leader to end")
        deciding = lockd.beside(lockd.call(wire.decide(txn, "commit"), node=old))
        await T.sleep(T.clock_slack, "the decision to reach the node's socket")
    answer = await deciding
    expect(answer, refused("tc_unavailable"), refused("tc_not_leader"), ok(state="commit"), why="on waking")
    expect(await lockd.recorded(txn, old), refused("txn_not_found"), why="nothing is recorded under the old term")
    await together_again(lockd, T.now())
    one = [participant("default", "k")]
    for node in lockd.nodes:
        stale = await lockd.call(wire.apply(lockd.txn(), "commit", one, term=leader.term), node=node)
        expect(stale, *stale_term(), why=f"the old term at {node}; the new one is {new.term}")


@verifies("TC-STEP-05", part=2, isolation="disruptive", waits="cluster_leader_max + survivor_leads_max + rejoin_max")
async def test_c09_two_of_three_killed(lockd: Lockd, faults: Faults) -> None:
    """The leader steps down with its lease; nobody leads until the dead have expired; then the survivor leads alone."""
    _, leader = await lockd.cluster()
    kept = lockd.at(leader.endpoint)
    one, two = lockd.others(kept)
    async with faults.during("kill", one), faults.during("kill", two) as last:
        killed = Moment(last.asked, last.in_force)
        await nobody_leads(lockd, kept, killed)
        expect(await decide(lockd, kept), refused("tc_unavailable"), why="a decision without a quorum")
        await survivor_leads(lockd, kept, killed)
        expect(await decide(lockd, kept), ok(state="commit"), why="the survivor decides alone")
    await together_again(lockd, lockd.T.now())


@verifies(
    "TC-INV-02",
    part=2,
    isolation="disruptive",
    waits="cluster_leader_max + 3*(rejoin_max + four_leader_ttl) + exit_max",
)
async def test_c13_rolling_restart(lockd: Lockd, faults: Faults, T: SpecTime) -> None:
    """Every node is stopped and started in turn: each ends in time, lists are whole again, terms only grow."""
    nodes, leader = await lockd.cluster()
    for node in nodes:
        async with faults.during("term", node) as window:
            ended = Moment(window.in_force, window.in_force)
            T.at_most("exit_max", since=Moment(window.asked, window.asked), seen=ended, what=f"the end of {node}")
        started = T.now()
        now = await together_again(lockd, started)
        demand(now.term >= leader.term, f"a term of {leader.term} or above", now.describe())
        leader = now
        await T.sleep_until(started, T.four_leader_ttl, "the next node's turn")


@verifies("TC-RM-07", part=2, isolation="disruptive", waits="cluster_leader_max + 5*(rm_call_max + rejoin_max)")
async def test_c14_peer_killed_during_register(lockd: Lockd, faults: Faults, T: SpecTime) -> None:
    """Kills a node during a change, at a different moment each time: the change is on all live nodes or on none."""
    await lockd.cluster()
    a, b, c = lockd.nodes
    server = lockd.authority.server(name="x")
    for turn in range(ROUNDS):
        endpoint = nowhere(turn)
        changing = lockd.beside(lockd.call(wire.register(HASH, endpoint), server, node=a))
        await asyncio.sleep(lockd.context.random.random() * T.clock_slack / 10)
        async with faults.during("kill", c):
            answer = await changing
            expect(answer, ok(), refused("tc_rm_replication_failed"), why="the change during the kill")
            there = await same_entries(lockd, [a, b], "undo_max", T.now())
            agreed = (endpoint in there) is answer.ok
            demand(agreed, "an entry if, and only if, the answer said so", f"{names(there)} after {answer.describe()}")
        await together_again(lockd, T.now())
