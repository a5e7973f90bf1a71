"""What checks and scenarios share about lost quorums: who must not lead, for how long, and who leads afterwards.

A node that has lost its quorum may lead until its last lease ends and no longer. The survivors' member leases of the
lost nodes also expire; then the quorum of the rest shrinks, and a lone survivor may lead. So there is a window, from
the end of the leader lease to the expiry of the members, in which nobody may lead, and a check must look inside it
only. A partition that lasts longer than two leader leases lets both sides forget each other, and what happens after it
is healed is then open; a slow machine can stretch a partition that far, which makes a finding Inconclusive.

A fault on a link between nodes says something only if the nodes' own calls cross that link. A receipt proves the link,
not that: so `crossed` looks at the bytes that went over it before the fault.
"""

import time
from collections.abc import Sequence
from contextlib import AsyncExitStack

from holdfast.check.faults import Faults
from holdfast.check.finding import Finding, Inconclusive, NotObservable, Unsafe, demand, expect
from holdfast.check.timeline import Moment
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.client import Lockd
from holdfast.conformance.lockd.judge import shown
from holdfast.conformance.lockd.wire import Leader, participant, refused, stale_term
from holdfast.target.deployment import Link


async def nobody_leads(lockd: Lockd, node: str, since: Moment) -> None:
    """Watches that the node shows no leader between the end of the leader lease and the expiry of the members."""
    T = lockd.T
    await T.sleep_until(since, T.no_leader_from, "the last leader lease to end")

    async def nobody() -> None:
        asked = time.monotonic()
        leader = await lockd.lasting_leader(node)
        if asked < since.lo + T.no_leader_until:
            demand(leader is None, f"no leader at {node} without a quorum", shown(leader))

    left = since.lo + T.no_leader_until - time.monotonic()
    await lockd.throughout(nobody, left, "no leader without a quorum")


async def survivor_leads(lockd: Lockd, node: str, since: Moment) -> None:
    """Waits until the node leads with itself as the only member, and judges the time."""

    async def alone() -> bool:
        leader = await lockd.valid_leader(node)
        return leader is not None and [leader.endpoint] == await lockd.members(node) == [lockd.endpoint(node)]

    await lockd.comes(alone, "survivor_leads_max", since=since, what="the survivor to lead alone")


async def with_lease_left(lockd: Lockd, node: str) -> Leader:
    """Waits until the node shows a leader that has just been renewed, so that its lease does not end soon; returns it.

    What happens right afterwards then happens long before that lease would have run out.
    """
    T = lockd.T

    async def look() -> Leader | None:
        leader = await lockd.valid_leader(node)
        left = leader.expires_at / 1000 - time.time() if leader else 0.0
        return leader if left >= T.leader_ttl - T.renew_interval / 2 else None

    what = "a leader that has just renewed its lease"
    leader, _ = await lockd.awaits("TC-STEP-01", look, "lease_settled_max", what=what)
    return leader


def before_its_end(lockd: Lockd, lease: Leader) -> float:
    """Returns the last moment that is surely before the end of a lease, which each node dates a little differently."""
    return lockd.moment_of(lease.expires_at).lo - lockd.T.clock_slack


async def handed_over(lockd: Lockd, nodes: Sequence[str], old: Leader, since: Moment) -> Leader:
    """Waits until these nodes follow a successor of a leader that has left; returns it.

    A release lets them elect at once. Without one they have to wait until its lease has run out, so a successor that is
    there only then was not handed anything. Between the suite's bound and that moment it is merely slow.
    """
    end = before_its_end(lockd, old)

    async def look() -> Leader | None:
        return await lockd.one_leader(*nodes, above=old.term)

    what = f"a leader above term {old.term} before the lease of the old one ends"
    leader, seen = await lockd.T.until(look, give_up=max(end - since.hi, lockd.look_every), since=since, what=what)
    if seen.lo > end:
        raise Finding([what], f"{leader.describe()}, only when it had ended", late=True)
    lockd.T.at_most("handover_max", since=since, seen=seen, what=what)
    return leader


async def crossed(lockd: Lockd, *links: str) -> None:
    """Waits until bytes of the nodes go over each of these links. Raises NotObservable if none do.

    Bytes from before do not count: a node may have used a link to join and nothing but real addresses since. While no
    fault is on them nobody but the nodes uses the links, and every node announces itself to every other once an
    interval. A proxy that counts nothing can't be asked.
    """
    T, start = lockd.T, lockd.T.now()
    try:
        before = {name: (await _link(lockd, name).counters()).bytes_up for name in links}
    except NotObservable as uncounted:
        lockd.context.transcript.note(f"whether nodes use their links is not counted: {uncounted.hook}")
        return
    for name in links:

        async def used(name: str = name) -> bool:
            return (await _link(lockd, name).counters()).bytes_up > before[name]

        try:
            await T.until(used, give_up=T.never("next_tick_max"), since=start, what=f"traffic of nodes over {name}")
        except Finding as unused:
            raise NotObservable(
                f"[[node]] start with {{host}} and {{proxy}}: calls between nodes that cross the link {name}"
            ) from unused


def _link(lockd: Lockd, name: str) -> Link:
    return lockd.deployment.opened(name).link


def both_ways(lockd: Lockd, node: str) -> list[str]:
    """Returns the names of all links between this node and the others."""
    return [link for other in lockd.others(node) for link in (f"{node}-{other}", f"{other}-{node}")]


async def isolate(lockd: Lockd, faults: Faults, stack: AsyncExitStack, node: str, kind: str) -> None:
    """Puts the fault on all links between this node and the others, in both directions; our own calls still pass."""
    for link in both_ways(lockd, node):
        await stack.enter_async_context(faults.during(kind, link))


async def isolated_leader(lockd: Lockd, faults: Faults, kind: str, bound: str) -> None:
    """Isolates the leader: it must stop deciding when its lease ends, and follow its successor once it is healed."""
    T = lockd.T
    _, leader = await lockd.cluster()
    old = lockd.at(leader.endpoint)
    others = lockd.others(old)
    await crossed(lockd, *both_ways(lockd, old))
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
    except Unsafe:
        raise
    except Finding as finding:
        if (lasted := healed.hi - begun.lo) > T.two_leader_ttl:
            raise Inconclusive(
                f"the partition lasted {lasted:.1f} s, so both sides may have forgotten each other: {finding}"
            ) from finding
        raise
    for node in lockd.nodes:
        one = [participant("default", "k")]
        stale = await lockd.call(wire.apply(lockd.txn(), "commit", one, term=leader.term), node=node)
        expect(stale, *stale_term(), why=f"the old term at {node}; the new one is {new.term}")
    await lockd.decides(old, "control: decisions work on the healed node")
