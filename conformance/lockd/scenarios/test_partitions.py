"""Links between nodes that break (C5 … C8), are slow (C10, C11) or unreliable (C12)."""

import asyncio
from contextlib import AsyncExitStack
from functools import partial
from itertools import permutations

from holdfast.check.faults import Faults
from holdfast.check.finding import expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.client import Lockd
from holdfast.conformance.lockd.judge import names, same_leader
from holdfast.conformance.lockd.membership import nowhere
from holdfast.conformance.lockd.quorum import both_ways, crossed, isolate, isolated_leader
from holdfast.conformance.lockd.scenarios.steps import (
    HASH,
    decide,
    same_entries,
    together_again,
    unchanged,
)
from holdfast.conformance.lockd.wire import ok, refused

FAULTS = ("chaos.partition", "chaos.latency", "multi_node")
# In the spec's seconds: a hop keeps its proportion to the leases at every time scale.
HOP, FAR = 0.3, 6.0
RESETS, PAIRS = 12, 6
STRETCHES = 20


@verifies(
    "TC-TXN-02",
    part=2,
    isolation="disruptive",
    needs=FAULTS,
    waits="cluster_leader_max + next_tick_max + two_leader_ttl",
)
async def test_c05_leader_unheard(lockd: Lockd, faults: Faults, T: SpecTime) -> None:
    """Nobody reaches the leader, but it reaches everybody: it goes on to lead, and followers name it.

    For two leases only: then its own list, which hears of nobody, may begin to shrink.
    """
    _, leader = await lockd.cluster()
    old = lockd.at(leader.endpoint)
    others = lockd.others(old)
    await crossed(lockd, *(f"{other}-{old}" for other in others))
    async with AsyncExitStack() as stack:
        begun = T.now()
        for other in others:
            await stack.enter_async_context(faults.during("refuse", f"{other}-{old}"))

        async def goes_on() -> None:
            await unchanged(lockd, lockd.nodes, leader)
            expect(await decide(lockd, old), ok(state="commit"), why="the leader itself decides")
            for node in others:
                named = refused("tc_not_leader", leader_endpoint=leader.endpoint)
                expect(await decide(lockd, node), named, why=f"a decision at {node}, which can't forward")

        left = begun.lo + T.two_leader_ttl - T.clock_slack - T.now().lo
        await lockd.throughout(goes_on, left, "the leader that nobody reaches", every=T.renew_interval / 5)
    expect(await decide(lockd, others[0]), ok(state="commit"), why="forwarding works again")


@verifies("TC-STEP-08", isolation="disruptive", waits="cluster_leader_max + next_tick_max + two_leader_ttl + heal_max")
async def test_c06_leader_isolated(lockd: Lockd, faults: Faults) -> None:
    """Connections are refused in both directions."""
    await isolated_leader(lockd, faults, "refuse", "lease_settled_max")


@verifies(
    "TC-STEP-08",
    isolation="disruptive",
    waits="cluster_leader_max + next_tick_max + two_leader_ttl + blackhole_max + heal_max",
)
async def test_c07_leader_in_a_black_hole(lockd: Lockd, faults: Faults) -> None:
    """Bytes are swallowed in both directions, so every call runs into its timeout."""
    await isolated_leader(lockd, faults, "stall", "blackhole_max")


async def _register(lockd: Lockd, node: str, endpoint: str) -> wire.Answer:
    return await lockd.call(wire.register(HASH, endpoint), lockd.authority.server(name="x"), node=node)


@verifies(
    "TC-RM-09",
    part=2,
    isolation="disruptive",
    needs=FAULTS,
    waits="cluster_leader_max + next_tick_max + three_leader_ttl",
)
async def test_c08_follower_isolated(lockd: Lockd, faults: Faults, T: SpecTime) -> None:
    """The others keep leader and term, changes of the registry fail, and healing needs no election."""
    _, leader = await lockd.cluster()
    leading = lockd.at(leader.endpoint)
    lost, other = lockd.others(leading)
    await crossed(lockd, *both_ways(lockd, lost))
    async with AsyncExitStack() as stack:
        begun = T.now()
        await isolate(lockd, faults, stack, lost, "refuse")
        answer = await _register(lockd, leading, nowhere(1))
        expect(answer, refused("tc_rm_replication_failed"), why="a member is unreachable")
        left = begun.lo + T.two_leader_ttl - T.clock_slack - T.now().lo
        watch = partial(unchanged, lockd, [leading, other], leader)
        await lockd.throughout(watch, left, "the leader without one follower", every=T.renew_interval / 5)
    healed = T.now()
    now = await together_again(lockd, healed, "heal_max")
    same_leader(now, leader, "leader and term after healing")
    left_over = names(await same_entries(lockd, lockd.nodes, "undo_max", healed))
    expect(left_over, names([]), why="nothing of the failed change is left")


@verifies(
    "TC-ELECT-04",
    part=2,
    isolation="disruptive",
    needs=FAULTS,
    waits="cluster_leader_max + next_tick_max + 20*(two_leader_ttl + clock_slack)",
)
async def test_c10_all_ways_slow(lockd: Lockd, faults: Faults, T: SpecTime) -> None:
    """Ten minutes on slow links: no leader change, and no list that loses a member.

    In stretches: a server hangs up on a canary that stays silent in its handshake for too long.
    """
    _, leader = await lockd.cluster()

    links = [f"{one}-{other}" for one, other in permutations(lockd.nodes, 2)]
    await crossed(lockd, *links)

    async def calm() -> None:
        await unchanged(lockd, lockd.nodes, leader)
        for node in lockd.nodes:
            await lockd.lists(node, *(lockd.endpoint(each) for each in lockd.nodes), why="links are slow, not broken")

    for _ in range(STRETCHES):
        async with AsyncExitStack() as stack:
            for link in links:
                await stack.enter_async_context(faults.during("delay", link, seconds=T.scaled(HOP)))
            await lockd.throughout(calm, T.two_leader_ttl, "leader and lists", every=T.renew_interval / 2)


@verifies(
    "TC-RM-07",
    part=2,
    isolation="disruptive",
    needs=FAULTS,
    waits="cluster_leader_max + next_tick_max + 3*leader_ttl + undo_max",
)
async def test_c11_one_node_far_away(lockd: Lockd, faults: Faults, T: SpecTime) -> None:
    """A follower that answers later than calls wait: the leader stays, and no change of the registry takes hold."""
    _, leader = await lockd.cluster()
    leading = lockd.at(leader.endpoint)
    far, near = lockd.others(leading)
    await crossed(lockd, *both_ways(lockd, far))
    async with AsyncExitStack() as stack:
        begun = T.now()
        for link in both_ways(lockd, far):
            await stack.enter_async_context(faults.during("delay", link, seconds=T.scaled(FAR)))
        answer = await _register(lockd, leading, nowhere(1))
        expect(answer, refused("tc_rm_replication_failed"), why="one member is too slow")
        sent, seen = Moment(answer.sent, answer.sent), Moment(answer.received, answer.received)
        T.at_most("rm_call_max", since=sent, seen=seen, what="the failed change")
        left = begun.lo + T.two_leader_ttl - T.clock_slack - T.now().lo
        watch = partial(unchanged, lockd, [leading, near], leader)
        await lockd.throughout(watch, max(left, T.clock_slack), "the leader", every=T.renew_interval / 5)
    left_over = names(await same_entries(lockd, lockd.nodes, "undo_max", T.now()))
    expect(left_over, names([]), why="nothing of the failed change is left")


@verifies(
    "TC-INV-02",
    part=2,
    isolation="disruptive",
    needs=FAULTS,
    waits="cluster_leader_max + next_tick_max + 2*rm_fallback_max",
)
async def test_c12_resets_under_churn(lockd: Lockd, faults: Faults, T: SpecTime) -> None:
    """Connections break while the registry changes; once they hold, a repeated register is in force everywhere."""
    await lockd.cluster()
    links = [f"{one}-{other}" for one, other in permutations(lockd.nodes, 2)]
    await crossed(lockd, *links)
    over = asyncio.Event()
    churning = [lockd.beside(_churn(lockd, turn, over)) for turn in range(PAIRS)]
    for _ in range(RESETS):
        async with faults.during("cut", lockd.context.random.choice(links)):
            await T.sleep(T.scaled(HOP), "calls under the cut")
    over.set()
    await asyncio.gather(*churning)
    await together_again(lockd, T.now())
    for turn in range(PAIRS):
        expect(await _register(lockd, lockd.nodes[turn % len(lockd.nodes)], nowhere(turn)), ok(), why="in quiet")
    wanted = names(sorted(nowhere(turn) for turn in range(PAIRS)))
    expect(names(await same_entries(lockd, lockd.nodes, "rm_fallback_max", T.now())), wanted, why="all registries")


async def _churn(lockd: Lockd, turn: int, over: asyncio.Event) -> None:
    server, node = lockd.authority.server(name=f"rm{turn}"), lockd.nodes[turn % len(lockd.nodes)]
    while not over.is_set():
        for make in (wire.register, wire.unregister):
            answer = await lockd.call(make(HASH, nowhere(turn)), server, node=node)
            expect(answer, ok(), refused("tc_rm_replication_failed"), why="a change while connections break")
            await lockd.T.sleep(lockd.T.clock_slack / 5, "the next change")
