"""Crash and expiry (seed): a node that crashes stays listed until its lease ends, and may renew that lease."""

import time

from holdfast.check.finding import demand
from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.conformance.lockd.client import Lockd
from holdfast.conformance.lockd.judge import names
from holdfast.conformance.lockd.spy_cluster import spy_members


@verifies("TC-CRASH-01", isolation="quiet", nodes=1, waits="membership_ttl + clock_slack + next_tick_max")
async def test_a_silent_member_stays_until_its_lease_ends(lockd: Lockd, T: SpecTime) -> None:
    node = lockd.lone
    (spy,) = await spy_members(lockd, node, 1)
    spy.fall_silent()
    await spy.close()
    expiry = lockd.moment_of(spy.lease_end)

    async def listed() -> None:
        seen = await lockd.members(node)
        if (left := expiry.lo - time.monotonic()) > 0:
            why = f"{left:.1f} s before its lease ends"
            demand(spy.endpoint in seen, f"{spy.endpoint} in the list of {node}", names(seen), why)

    await lockd.throughout(listed, expiry.lo - T.clock_slack - time.monotonic(), "the silent member")
    await T.sleep_until(expiry, T.clock_slack, "the end of its lease")
    await lockd.lacks(node, spy.endpoint, why="its lease has ended")


@verifies("TC-CRASH-01", part=2, isolation="disruptive", waits="cluster_leader_max + crash_gone_max")
async def test_a_killed_node_stays_until_its_lease_ends(lockd: Lockd, T: SpecTime) -> None:
    nodes, _ = await lockd.cluster()
    a, *others = nodes
    killed = await lockd.kill(a)

    async def listed() -> None:
        for node in others:
            seen = await lockd.members(node)
            if time.monotonic() < killed.lo + T.leader_ttl:
                why = "the lease of the killed node is live"
                demand(lockd.endpoint(a) in seen, f"{lockd.endpoint(a)} in the list of {node}", names(seen), why)

    await lockd.throughout(listed, T.leader_ttl - T.clock_slack, "the killed node")

    async def gone() -> bool:
        return all([lockd.endpoint(a) not in await lockd.members(node) for node in others])

    await lockd.comes(gone, "crash_gone_max", since=killed, what="the killed node to disappear")


@verifies("TC-CRASH-02", isolation="disruptive", waits="2*cluster_leader_max + leave_reject_max")
async def test_a_node_back_before_expiry_has_one_lease(lockd: Lockd) -> None:
    nodes, _ = await lockd.cluster()
    a, *others = nodes
    await lockd.kill(a)
    for node in others:
        await lockd.lists(node, lockd.endpoint(a), why="right after the kill")
    await lockd.restart(a)
    for node in others:
        await lockd.lists(node, lockd.endpoint(a), why="right after the restart")
    await lockd.agreed(*nodes)
    await lockd.goes(a)
    for node in others:
        await lockd.lacks(node, lockd.endpoint(a), why="it has left, and had one lease only")
