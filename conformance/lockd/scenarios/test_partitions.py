"""Nodes that can't reach each other (C5 … C8): inbound, whole, silently, and a follower."""

from holdfast.check import verifies
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.client import Lockd
from holdfast.conformance.lockd.membership import nowhere
from holdfast.conformance.lockd.partitions import around, struck, towards
from holdfast.conformance.lockd.wire import Leader, ok, participant, refused
from holdfast.faults import Faults
from holdfast.finding import expect
from holdfast.spectime import SpecTime
from holdfast.timeline import Moment

CUT = ("chaos.partition",)
SILENT = (refused("tc_unavailable"), refused("tc_not_leader"))


async def keeps(lockd: Lockd, nodes: list[str], leader: Leader) -> None:
    for node in nodes:
        seen = await lockd.valid_leader(node)
        if seen is not None:
            expect((seen.endpoint, seen.term), (leader.endpoint, leader.term), why=f"the leader that {node} follows")


async def heals(lockd: Lockd, leader: Leader, since: Moment) -> Leader:
    """Until all nodes follow one leader, at this term or a higher one."""

    async def look() -> Leader | None:
        return await lockd.one_leader(*lockd.nodes, above=leader.term - 1)

    found, _ = await lockd.comes(look, "heal_max", since=since, what="all nodes to follow one leader")
    return found


async def old_term_is_refused(lockd: Lockd, term: int) -> None:
    one = [participant("default", "k")]
    for node in lockd.nodes:
        stale = await lockd.call(wire.apply(lockd.txn(), "commit", one, term=term), node=node)
        expect(stale, refused("tc_term_stale"), why=f"the old term at {node}")


@verifies(
    "TC-TXN-02", part=2, isolation="disruptive", nodes=3, needs=CUT, waits="cluster_leader_max + 2*two_leader_ttl"
)
async def test_c05_leader_cannot_be_reached(lockd: Lockd, faults: Faults, T: SpecTime) -> None:
    """What the leader sends arrives, what is sent to it does not: it leads on, and followers say where it is."""
    _, leader = await lockd.cluster()
    old = lockd.at(leader.endpoint)
    others = lockd.others(old)
    async with struck(faults, "refuse", towards(lockd, old)) as cut:

        async def look() -> None:
            await keeps(lockd, lockd.nodes, leader)
            answer = await lockd.call(wire.decide(lockd.txn(), "commit"), node=others[0])
            expect(answer, refused("tc_not_leader", leader_endpoint=leader.endpoint), why="a follower's forward")

        await lockd.throughout(look, cut.lo + T.two_leader_ttl - T.now().hi, "the leader leads on", every=T.clock_slack)
    healed = T.now()

    async def forwards() -> bool:
        return (await lockd.call(wire.decide(lockd.txn(), "commit"), node=others[0])).ok

    await lockd.comes(forwards, "heal_max", since=healed, what="decisions through a follower")
    expect((await heals(lockd, leader, healed)).term, leader.term, why="the term, after all of it")


@verifies(
    "TC-STEP-08", isolation="disruptive", nodes=3, needs=CUT, waits="cluster_leader_max + two_leader_ttl + heal_max"
)
async def test_c06_leader_isolated(lockd: Lockd, faults: Faults, T: SpecTime) -> None:
    """Refused by everybody: silent when its lease is over, while the others elect; healed, it follows."""
    _, leader = await lockd.cluster()
    old = lockd.at(leader.endpoint)
    async with struck(faults, "refuse", around(lockd, old)) as cut:

        async def successor() -> Leader | None:
            return await lockd.one_leader(*lockd.others(old), above=leader.term)

        new, _ = await lockd.comes(successor, "lease_settled_max", since=cut, what="a successor")
        await _silent(lockd, old, cut)
    found = await heals(lockd, new, T.now())
    expect(found.term, new.term, why="the term of the others, after healing")
    await old_term_is_refused(lockd, leader.term)
    control = await lockd.call(wire.decide(lockd.txn(), "commit"), node=old)
    expect(control, ok(state="commit"), why="control: decisions work on the healed node")


async def _silent(lockd: Lockd, old: str, cut: Moment) -> None:
    T = lockd.T
    await T.sleep_until(cut, T.lease_silent_max, "the isolated leader's lease to end")

    async def silent() -> None:
        answer = await lockd.call(wire.decide(lockd.txn(), "commit"), node=old)
        expect(answer, *SILENT, why="a decision at the isolated leader")

    left = cut.lo + T.two_leader_ttl - T.clock_slack - T.now().lo
    await lockd.throughout(silent, max(left, T.clock_slack), "the isolated leader")


@verifies(
    "TC-STEP-08", isolation="disruptive", nodes=3, needs=CUT, waits="cluster_leader_max + two_leader_ttl + 2*heal_max"
)
async def test_c07_leader_in_a_black_hole(lockd: Lockd, faults: Faults, T: SpecTime) -> None:
    """As C6, but nothing answers at all, so that every call waits for its time-out; when a successor came is noted."""
    _, leader = await lockd.cluster()
    old = lockd.at(leader.endpoint)
    others = lockd.others(old)
    async with struck(faults, "stall", around(lockd, old)) as cut:
        await _silent(lockd, old, cut)
        seen = await lockd.one_leader(*others, above=leader.term)
        said = seen.describe() if seen else "none yet"
        lockd.context.transcript.note(f"successor {T.now().hi - cut.lo:.1f} s after the cut: {said}")
    healed = T.now()

    async def follows() -> Leader | None:
        return await lockd.one_leader(*lockd.nodes, above=leader.term)

    await lockd.comes(follows, "cluster_leader_max", since=healed, what="all nodes to follow one leader")
    await old_term_is_refused(lockd, leader.term)


@verifies(
    "TC-STEP-02", isolation="disruptive", nodes=3, needs=CUT, waits="cluster_leader_max + two_leader_ttl + 2*heal_max"
)
async def test_c08_follower_isolated(lockd: Lockd, faults: Faults, T: SpecTime) -> None:
    """The leader leads on in its term; what needs every member is refused, and leaves nothing behind."""
    _, leader = await lockd.cluster()
    old = lockd.at(leader.endpoint)
    cut_off, kept = lockd.others(old)
    backend, endpoint = "island-of-nobody", nowhere(7)
    async with struck(faults, "refuse", around(lockd, cut_off)) as cut:
        answer = await lockd.call(wire.register(backend, endpoint), lockd.own(old), node=old)
        expect(answer, refused("tc_rm_replication_failed"), why="a registration that can't reach every member")

        async def look() -> None:
            await keeps(lockd, [old, kept], leader)
            expect(await lockd.entries(backend, old), [], why="what was refused is not there")

        left = cut.lo + T.two_leader_ttl - 2 * T.clock_slack - T.now().hi
        await lockd.throughout(look, left, "the leader leads on", every=T.clock_slack)
    found = await heals(lockd, leader, T.now())
    expect(found.term, leader.term, why="the term, after healing")
    registered = await lockd.call(wire.register(backend, endpoint), lockd.own(old), node=old)
    expect(registered, ok(), why="control: a registration with every member there")
