"""What checks and scenarios share about lost quorums: who must not lead, for how long, and who leads afterwards.

A node that has lost its quorum may lead until its last lease ends and no longer. The survivors' member leases of the
lost nodes also expire; then the quorum of the rest shrinks, and a lone survivor may lead. So there is a window, from
the end of the leader lease to the expiry of the members, in which nobody may lead, and a check must look inside it
only. A partition that lasts longer than two leader leases lets both sides forget each other, and what happens after it
is healed is then open; a slow machine can stretch a partition that far, which makes a finding Inconclusive.
"""

import time
from contextlib import AsyncExitStack

from holdfast.check.faults import Faults
from holdfast.check.finding import Finding, Inconclusive, expect
from holdfast.check.timeline import Moment
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.client import Lockd
from holdfast.conformance.lockd.wire import Leader, ok, participant, refused


async def nobody_leads(lockd: Lockd, node: str, since: Moment) -> None:
    """Watches that the node shows no leader between the end of the leader lease and the expiry of the members."""
    T = lockd.T
    await T.sleep_until(since, T.no_leader_from, "the last leader lease to end")

    async def nobody() -> None:
        asked = time.monotonic()
        leader = await lockd.valid_leader(node)
        if asked < since.lo + T.no_leader_until:
            assert leader is None, f"{node} leads without a quorum: {leader.describe()}"

    left = since.lo + T.no_leader_until - time.monotonic()
    await lockd.throughout(nobody, left, "no leader without a quorum")


async def survivor_leads(lockd: Lockd, node: str, since: Moment) -> None:
    """Waits until the node leads with itself as the only member, and judges the time."""

    async def alone() -> bool:
        leader = await lockd.valid_leader(node)
        return leader is not None and [leader.endpoint] == await lockd.members(node) == [lockd.endpoint(node)]

    await lockd.comes(alone, "survivor_leads_max", since=since, what="the survivor to lead alone")


async def isolate(lockd: Lockd, faults: Faults, stack: AsyncExitStack, node: str, kind: str) -> None:
    """Puts the fault on all links between this node and the others, in both directions; our own calls still pass."""
    for other in lockd.others(node):
        for link in (f"{node}-{other}", f"{other}-{node}"):
            await stack.enter_async_context(faults.during(kind, link))


async def isolated_leader(lockd: Lockd, faults: Faults, kind: str, bound: str) -> None:
    """Isolates the leader: it must stop deciding when its lease ends, and follow its successor once it is healed."""
    T = lockd.T
    _, leader = await lockd.cluster()
    old = lockd.at(leader.endpoint)
    others = lockd.others(old)
    async with AsyncExitStack() as stack:
        begun = T.now()
        await isolate(lockd, faults, stack, old, kind)
        cut = T.now()

        async def successor() -> Leader | None:
            return await lockd.one_leader(*others, above=leader.term)

        new, _ = await lockd.comes(successor, bound, since=cut, what="a successor of the isolated leader")
        await T.sleep_until(cut, T.lease_silent_max, "the isolated leader's lease to end")

        async def silent() -> None:
            answer = await lockd.call(wire.decide(lockd.txn(), "commit"), node=old)
            expect(answer, refused("tc_unavailable"), refused("tc_not_leader"), why="a decision at the isolated leader")

        left = begun.lo + T.two_leader_ttl - T.clock_slack - T.now().lo
        await lockd.throughout(silent, max(left, T.clock_slack), "the isolated leader")
    healed = T.now()

    async def follows() -> bool:
        found = await lockd.one_leader(*lockd.nodes, above=leader.term)
        return found is not None

    try:
        await lockd.comes(follows, "heal_max", since=healed, what="all nodes to follow the new leader")
    except Finding as finding:
        if (lasted := healed.hi - begun.lo) > T.two_leader_ttl:
            raise Inconclusive(
                f"the partition lasted {lasted:.1f} s, so both sides may have forgotten each other: {finding}"
            ) from finding
        raise
    for node in lockd.nodes:
        one = [participant("default", "k")]
        stale = await lockd.call(wire.apply(lockd.txn(), "commit", one, term=leader.term), node=node)
        expect(stale, refused("tc_term_stale"), why=f"the old term at {node}; the new one is {new.term}")
    control = await lockd.call(wire.decide(lockd.txn(), "commit"), node=old)
    expect(control, ok(state="commit"), why="control: decisions work on the healed node")
