"""Leaders that go (C1 … C4): killed, told to stop, told to leave, frozen; and C9, two of three killed."""

import time

from holdfast.check import verifies
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.client import Lockd
from holdfast.conformance.lockd.wire import Leader, ok, participant, refused
from holdfast.fault import Receipt
from holdfast.faults import Faults
from holdfast.finding import expect
from holdfast.spectime import SpecTime
from holdfast.timeline import Moment

NOBODY_DECIDES = (refused("tc_not_leader"), refused("tc_unavailable"))


async def successor(lockd: Lockd, old: str, leader: Leader, bound: str, since: Moment) -> Leader:
    """Until all others follow one leader at a higher term."""

    async def look() -> Leader | None:
        return await lockd.one_leader(*lockd.others(old), above=leader.term)

    found, _ = await lockd.comes(look, bound, since=since, what="a successor that the others agree on")
    return found


@verifies("TC-ELECT-07", isolation="disruptive", nodes=3, waits="2*cluster_leader_max + lease_settled_max")
async def test_c01_leader_killed(lockd: Lockd, faults: Faults) -> None:
    """Survivors refuse to decide, with the old leader's name and then without, until one of them leads."""
    nodes, leader = await lockd.cluster()
    old = lockd.at(leader.endpoint)
    survivors = lockd.others(old)
    async with faults.during("kill", old) as window:
        killed = Moment(window.asked, window.in_force)
        await lockd.hang_up()

        async def decides() -> bool:
            answers = [await lockd.call(wire.decide(lockd.txn(), "commit"), node=node) for node in survivors]
            for answer in answers:
                expect(answer, ok(state="commit"), *NOBODY_DECIDES, why="a decision after the leader's death")
            return any(answer.ok for answer in answers)

        await lockd.comes(decides, "lease_settled_max", since=killed, what="a decision on a survivor")
        new = await successor(lockd, old, leader, "lease_settled_max", killed)
    await lockd.hang_up()
    again, _ = await lockd.agreed(*nodes, above=new.term - 1)
    expect(again.term, new.term, why="the killed node comes back as a follower, in the same term")


@verifies("TC-LEAVE-10", isolation="disruptive", nodes=3, waits="2*cluster_leader_max + exit_max")
async def test_c02_leader_told_to_stop(lockd: Lockd, faults: Faults, T: SpecTime) -> None:
    """SIGTERM: the leader releases its leases and leaves, so that nobody waits for them to lapse."""
    nodes, leader = await lockd.cluster()
    old = lockd.at(leader.endpoint)
    others, gone = lockd.others(old), lockd.endpoint(old)
    began = T.now()

    async def dropped() -> bool:
        return all([gone not in await lockd.members(node) for node in others])

    dropping = lockd.beside(lockd.comes(dropped, "graceful_drop_max", since=began, what="the others to drop it"))
    following = lockd.beside(successor(lockd, old, leader, "handover_max", began))
    async with faults.during("term", old):
        await dropping
        new = await following
    await lockd.hang_up()
    await lockd.agreed(*nodes, above=new.term - 1)


@verifies("TC-LEAVE-10", isolation="disruptive", nodes=3, waits="2*cluster_leader_max + handover_max")
async def test_c03_leader_leaves(lockd: Lockd, faults: Faults) -> None:
    """The leave of the interface: released at once, and outside of the cluster the node decides nothing."""
    nodes, leader = await lockd.cluster()
    old = lockd.at(leader.endpoint)
    async with faults.stimulus("leave", old) as window:
        answer = await lockd.api_leave(old)
        window.receipts.append(Receipt(f"{old}: {answer.describe()}", answer.ok))
        left = Moment(answer.sent, answer.received)
        await successor(lockd, old, leader, "handover_max", left)
        expect(await lockd.call(wire.decide(lockd.txn(), "commit"), node=old), *NOBODY_DECIDES, why="a node that left")
    await lockd.come_back(old)
    await lockd.introduce(*nodes)
    await lockd.agreed(*nodes, above=leader.term)


@verifies("TC-STEP-07", part=2, isolation="disruptive", nodes=3, waits="2*cluster_leader_max + 2*lease_settled_max")
async def test_c04_leader_frozen(lockd: Lockd, faults: Faults, T: SpecTime) -> None:
    """SIGSTOP for longer than its lease: whatever it does first when it wakes, it does not lead in the old term."""
    nodes, leader = await lockd.cluster()
    old = lockd.at(leader.endpoint)
    async with faults.during("stop", old) as window:
        frozen = Moment(window.asked, window.in_force)
        new = await successor(lockd, old, leader, "lease_settled_max", frozen)
        await T.sleep_until(frozen, T.lease_settled_max, "the frozen leader's lease to end")
    woken = await lockd.leader(old)
    stale = (woken.leader.endpoint, woken.leader.term) == (leader.endpoint, leader.term)
    assert not (woken.has_leader and stale), f"the woken leader still leads: {woken.leader.describe()}"
    one = [participant("default", "k")]
    for node in nodes:
        late = await lockd.call(wire.apply(lockd.txn(), "commit", one, term=leader.term), node=node)
        expect(late, refused("tc_term_stale"), refused("tc_unavailable"), why=f"the old term at {node}")
    await lockd.agreed(*nodes, above=new.term - 1)


@verifies("TC-STEP-05", part=2, isolation="disruptive", nodes=3, waits="2*cluster_leader_max + survivor_leads_max")
async def test_c09_two_of_three_killed(lockd: Lockd, faults: Faults, T: SpecTime) -> None:
    """Without a quorum of its list nobody leads; when the dead have expired the survivor is all there is, and leads."""
    nodes, leader = await lockd.cluster()
    survivor = lockd.at(leader.endpoint)
    first, second = lockd.others(survivor)
    async with faults.during("kill", first), faults.during("kill", second) as window:
        killed = Moment(window.asked, window.in_force)
        await lockd.hang_up()
        await T.sleep_until(killed, T.no_leader_from, "the last lease to end")

        async def nobody() -> None:
            asked = time.monotonic()
            seen = await lockd.valid_leader(survivor)
            if asked < killed.lo + T.no_leader_until:
                assert seen is None, f"{survivor} leads without a quorum: {seen.describe()}"

        await lockd.throughout(nobody, killed.lo + T.no_leader_until - time.monotonic(), "nobody leads")

        async def leads() -> bool:
            seen = await lockd.valid_leader(survivor)
            return seen is not None and seen.endpoint == lockd.endpoint(survivor)

        await lockd.comes(leads, "survivor_leads_max", since=killed, what="the survivor to lead alone")
    await lockd.hang_up()
    await lockd.introduce(*nodes)
    await lockd.agreed(*nodes, above=leader.term)
