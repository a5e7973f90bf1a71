"""An isolated leader (seed: Step-down and quorum loss; Test Expectations)."""

from contextlib import AsyncExitStack

from holdfast.check import verifies
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.client import Lockd
from holdfast.conformance.lockd.wire import Leader, ok, participant, refused
from holdfast.faults import Faults
from holdfast.finding import expect
from holdfast.spectime import SpecTime


async def isolate(lockd: Lockd, faults: Faults, stack: AsyncExitStack, node: str) -> None:
    """Nothing passes between this node and the others, in either direction; our own calls do."""
    for other in lockd.others(node):
        for way in (f"{node}-{other}", f"{other}-{node}"):
            await stack.enter_async_context(faults.during("refuse", way))


@verifies("TC-STEP-08", isolation="disruptive", waits="cluster_leader_max + two_leader_ttl + heal_max")
async def test_an_isolated_leader_falls_silent_and_follows_after_healing(
    lockd: Lockd, faults: Faults, T: SpecTime
) -> None:
    _, leader = await lockd.cluster()
    old = lockd.at(leader.endpoint)
    others = lockd.others(old)
    async with AsyncExitStack() as stack:
        begun = T.now()
        await isolate(lockd, faults, stack, old)
        cut = T.now()

        async def successor() -> Leader | None:
            return await lockd.one_leader(*others, above=leader.term)

        new, _ = await lockd.comes(successor, "lease_settled_max", since=cut, what="a successor of the isolated leader")
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

    await lockd.comes(follows, "heal_max", since=healed, what="all nodes to follow the new leader")
    for node in lockd.nodes:
        one = [participant("default", "k")]
        stale = await lockd.call(wire.apply(lockd.txn(), "commit", one, term=leader.term), node=node)
        expect(stale, refused("tc_term_stale"), why=f"the old term at {node}; the new one is {new.term}")
    control = await lockd.call(wire.decide(lockd.txn(), "commit"), node=old)
    expect(control, ok(state="commit"), why="control: decisions work on the healed node")
