"""How leaves end (seed: Leave; Fan-out requirement): all or nothing by API, best effort at shutdown."""

from functools import partial

import pytest

from holdfast.check.finding import Finding, demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.client import Lockd
from holdfast.conformance.lockd.judge import demand_none, same_leader, told
from holdfast.conformance.lockd.membership import unless_calls_failed
from holdfast.conformance.lockd.quorum import before_its_end, handed_over, with_lease_left
from holdfast.conformance.lockd.spy import BROKEN, Call, Spy, spies
from holdfast.conformance.lockd.spy_cluster import reported_leader, spy_leader, spy_members
from holdfast.conformance.lockd.wire import Leader, no_vote, ok, refused
from holdfast.conformance.shared.stub import Reply
from holdfast.conformance.shared.wire import moment


def _guarded(lockd: Lockd, spy: Spy, since: Moment) -> list[float]:
    calls = spy.got_from(lockd.node_id(lockd.nodes[0]), wire.LEAVE, since=since)
    return [call.at for call in calls if call.marked(lockd.dialect.guard_header)]


@verifies("TC-LEAVE-06", isolation="disruptive", nodes=1, waits="next_tick_max + leave_reject_max")
async def test_a_dead_seed_does_not_block_a_leave(lockd: Lockd) -> None:
    node, (spy,) = lockd.lone, await spies(lockd, 1)
    await lockd.restart(node, join=f"{lockd.url(node)},{spy.endpoint},{lockd.closed_port()}")
    await spy.join(node)
    left = await lockd.api_leave(node)
    expect(left, ok(), why="all members accept, only a seed is dead")
    lockd.T.at_most("leave_ok_max", since=Moment(left.sent, left.sent), seen=lockd.T.now(), what="the leave")
    demand(_guarded(lockd, spy, moment(left)), "a guarded leave at the member", told(spy.got(wire.LEAVE)))


@verifies("TC-LEAVE-06", part=2, isolation="disruptive", nodes=2, waits="cluster_leader_max + leave_reject_max")
async def test_a_dead_seed_does_not_keep_a_peer_from_the_leave(lockd: Lockd) -> None:
    a, b = lockd.nodes[:2]
    await lockd.restart(a, join=f"{lockd.url(a)},{lockd.url(b)},{lockd.closed_port()}")
    await lockd.introduce(a, b)
    left = await lockd.api_leave(a)
    expect(left, ok(), why="all members accept, only a seed is dead")
    lockd.T.at_most("leave_ok_max", since=Moment(left.sent, left.sent), seen=lockd.T.now(), what="the leave")
    await lockd.lacks(b, lockd.endpoint(a), why="it has left")


async def _is_rejected(lockd: Lockd, node: str) -> Moment:
    answer = await lockd.api_leave(node)
    with lockd.context.arranging("TC-LEAVE-07"):
        expect(answer, refused("tc_cluster_unavailable"), why="one target of the fan-out does not accept")
    ended = Moment(answer.received, answer.received)
    if lockd.judges("TC-LEAVE-07"):
        lockd.T.at_most("leave_reject_max", since=Moment(answer.sent, answer.sent), seen=ended, what="the rejection")
    return ended


_REJECTED = "leave_reject_max + tick_settled_max + membership_ttl + leave_reject_max"


@verifies("TC-LEAVE-07", isolation="quiet", nodes=1, waits=_REJECTED)
async def test_a_rejected_leave_changes_nothing_and_can_be_repeated(lockd: Lockd, T: SpecTime) -> None:
    node = lockd.lone
    pair = await spy_members(lockd, node, 2)
    pair[-1].on(wire.LEAVE, BROKEN)
    rejected = await _is_rejected(lockd, node)

    async def listed() -> bool:
        return lockd.endpoint(node) in await lockd.members(node)

    await lockd.comes(listed, "tick_settled_max", since=rejected, what="the node in its own list")
    for spy in pair:
        await spy.receives(wire.ANNOUNCE, "tick_settled_max", since=rejected, what="the announcements to go on")
    await T.sleep_until(rejected, T.membership_ttl + T.clock_slack, "leases from before the leave to run out")
    await lockd.lists(node, lockd.endpoint(node), why="its leave was rejected, so it goes on to announce itself")
    pair[-1].script.clear()
    expect(await lockd.api_leave(node), ok(), why="the same leave with healthy peers")
    await lockd.lacks(node, lockd.endpoint(node), why="it has left")


@verifies(
    "TC-LEAVE-07", isolation="quiet", nodes=1, waits="leave_reject_max + member_expiry_settled + leave_reject_max"
)
async def test_a_leave_succeeds_once_the_failing_peer_has_expired(lockd: Lockd, T: SpecTime) -> None:
    node = lockd.lone
    _, failing = await spy_members(lockd, node, 2)
    failing.on(wire.LEAVE, BROKEN)
    await _is_rejected(lockd, node)
    failing.fall_silent()
    await T.sleep(T.member_expiry_settled, "the failing peer to expire")
    expect(await lockd.api_leave(node), ok(), why="the failing peer is no member any more")
    await lockd.lacks(node, lockd.endpoint(node), why="it has left")


@verifies("TC-LEAVE-07", isolation="quiet", nodes=1)
async def test_a_leave_without_a_lease_is_no_error(lockd: Lockd) -> None:
    nobody = lockd.authority.server(name="nobody")
    expect(await lockd.leave_as(nobody, lockd.lone), ok(), why="a repeated leave must be able to succeed")


@verifies("TC-LEAVE-07", part=2, isolation="quiet", nodes=2, waits=f"cluster_leader_max + {_REJECTED}")
async def test_a_peer_that_had_dropped_the_node_lists_it_again(lockd: Lockd) -> None:
    a, b = lockd.nodes[:2]
    await lockd.introduce(a, b)
    await lockd.agreed(a, b)
    (spy,) = await spies(lockd, 1)
    spy.on(wire.LEAVE, BROKEN)
    await spy.join(a, b)
    rejected = await _is_rejected(lockd, a)

    async def listed() -> bool:
        return lockd.endpoint(a) in await lockd.members(b)

    await lockd.comes(listed, "tick_settled_max", since=rejected, what="the peer to list the node again")


@verifies("TC-LEAVE-08", isolation="quiet", nodes=1, waits="lease_settled_max + leave_reject_max + membership_interval")
async def test_a_rejected_leave_keeps_the_leadership(lockd: Lockd, T: SpecTime) -> None:
    node = lockd.lone
    (spy,) = await spy_members(lockd, node, 1)
    before, _ = await lockd.leads(node)
    spy.on(wire.LEAVE, BROKEN)
    since = T.now()
    leaving = lockd.beside(_is_rejected(lockd, node))

    async def still_leads() -> None:
        same_leader(await lockd.valid_leader(node), before, "its leave is being rejected")

    while not leaving.done():
        await still_leads()
        await T.sleep(T.renew_interval / 10, "the rejection")
    await leaving
    await lockd.throughout(still_leads, T.membership_interval, "the leader after its rejected leave")
    demand_none(spy.got(wire.RELEASE, since=since), "no release for a leave that was rejected")


@pytest.mark.parametrize("trouble", ["none", "closed", "silent"])
@verifies("TC-LEAVE-09", isolation="disruptive", nodes=1, waits="exit_max + lease_settled_max")
async def test_a_graceful_stop_leaves_whatever_one_peer_does(lockd: Lockd, T: SpecTime, trouble: str) -> None:
    node = lockd.lone
    first, second = await spy_members(lockd, node, 2)
    await lockd.leads(node)
    if trouble == "closed":
        await first.close()
    elif trouble == "silent":
        first.on(wire.LEAVE, Reply(200, hold=2 * T.exit_max))
    since = T.now()
    status, ended = await lockd.term(node, T.exit_max)
    _ended(status, T)
    bound = "graceful_drop_max" if trouble == "none" else "graceful_drop_degraded_max"
    for spy in [first, second] if trouble == "none" else [second]:
        calls = _guarded(lockd, spy, since)
        lasted = f"the process was gone after {ended.hi - since.lo:.1f} s"
        with unless_calls_failed(lockd, since, spy):
            demand(calls, f"a guarded leave at {spy.name}", told(spy.got(wire.LEAVE, since=since)), lasted)
        T.at_most(bound, since=since, seen=Moment(calls[0], calls[0]), what="the leave of a stopping node")


async def _dropped(lockd: Lockd, node: str, at: list[str], bound: str, since: Moment) -> None:
    async def gone() -> bool:
        return all([lockd.endpoint(node) not in await lockd.members(place) for place in at])

    with unless_calls_failed(lockd, since):
        await lockd.comes(gone, bound, since=since, what=f"{', '.join(at)} to drop {node}")


@verifies("TC-LEAVE-09", part=2, isolation="disruptive", waits="cluster_leader_max + exit_max")
async def test_peers_drop_a_stopping_node_at_once(lockd: Lockd, T: SpecTime) -> None:
    nodes, _ = await lockd.cluster()
    since = T.now()
    stopping = lockd.beside(lockd.deployment.nodes[nodes[0]].term(T.exit_max))
    await _dropped(lockd, nodes[0], nodes[1:], "graceful_drop_max", since)
    _ended(await stopping, T)


@verifies("TC-LEAVE-09", part=3, isolation="disruptive", waits="cluster_leader_max + exit_max")
async def test_a_dead_peer_does_not_keep_the_others_from_the_leave(lockd: Lockd, T: SpecTime) -> None:
    nodes, _ = await lockd.cluster()
    dead, alive, leaving = sorted(nodes, key=lockd.url)
    await lockd.kill(dead)
    since = T.now()
    stopping = lockd.beside(lockd.deployment.nodes[leaving].term(T.exit_max))
    await _dropped(lockd, leaving, [alive], "graceful_drop_degraded_max", since)
    _ended(await stopping, T)


def _ended(status: int | None, T: SpecTime) -> None:
    if status is None:
        raise Finding(["the process to end"], f"it still runs after {T.exit_max:g} s", "SIGTERM", late=True)


def _is_release(leader: Leader, call: Call) -> bool:
    return call.term == leader.term and call.body.get("leader_id") == leader.id


@verifies("TC-LEAVE-10", isolation="quiet", nodes=1, waits="2*lease_settled_max + leave_reject_max")
async def test_a_leaving_leader_releases_its_leases(lockd: Lockd, T: SpecTime) -> None:
    node = lockd.lone
    pair = await spy_members(lockd, node, 2)
    await lockd.leads(node)
    leader, since = await with_lease_left(lockd, node), T.now()
    await lockd.goes(node)
    for spy in pair:
        await _releases(lockd, spy, leader, since)


async def _releases(lockd: Lockd, spy: Spy, leader: Leader, since: Moment) -> None:
    """Waits for the release of this lease: before it runs out by itself, since then a release is worth nothing."""
    end, ours = before_its_end(lockd, leader), partial(_is_release, leader)

    async def look() -> bool:
        return any(call.at < end for call in spy.got(wire.RELEASE, since=since, where=ours))

    left, what = max(end - since.hi, lockd.look_every), f"a release of term {leader.term} at {spy.name}"
    with spy.excused():
        _, seen = await lockd.T.until(look, give_up=left, since=since, what=what)
    lockd.T.at_most("handover_max", since=since, seen=seen, what=what)


@verifies("TC-LEAVE-10", part=2, isolation="disruptive", nodes=1, waits="2*lease_settled_max + exit_max")
async def test_a_stopping_leader_releases_its_leases(lockd: Lockd, T: SpecTime) -> None:
    node = lockd.lone
    pair = await spy_members(lockd, node, 2)
    await lockd.leads(node)
    leader, since = await with_lease_left(lockd, node), T.now()
    await lockd.term(node, T.exit_max)
    for spy in pair:
        calls = spy.got(wire.RELEASE, since=since)
        why = f"the process is gone; {leader.describe()}"
        demand(any(_is_release(leader, call) for call in calls), f"its release at {spy.name}", told(calls), why)


@verifies("TC-LEAVE-10", part=3, isolation="quiet", waits="cluster_leader_max + 2*lease_settled_max + leave_reject_max")
async def test_a_successor_takes_over_at_once_after_a_leave(lockd: Lockd, T: SpecTime) -> None:
    nodes, _ = await lockd.cluster()
    leader = await with_lease_left(lockd, nodes[0])
    old = lockd.at(leader.endpoint)
    since = T.now()
    await lockd.goes(old)
    await handed_over(lockd, lockd.others(old), leader, since)


@verifies("TC-LEAVE-10", part=4, isolation="disruptive", waits="cluster_leader_max + 2*lease_settled_max + exit_max")
async def test_a_successor_takes_over_at_once_after_a_stop(lockd: Lockd, T: SpecTime) -> None:
    nodes, _ = await lockd.cluster()
    leader = await with_lease_left(lockd, nodes[0])
    old = lockd.at(leader.endpoint)
    since = T.now()
    stopping = lockd.beside(lockd.deployment.nodes[old].term(T.exit_max))
    await handed_over(lockd, lockd.others(old), leader, since)
    await stopping


@verifies("TC-LEAVE-11", isolation="quiet", nodes=1, waits="3*lease_settled_max")
async def test_a_release_needs_leader_and_term(lockd: Lockd) -> None:
    node, (spy,) = await spy_leader(lockd, 1000)
    for leader, term in (("nobody", 1000), (spy.node_id, 999), (spy.node_id, 1001)):
        expect(await lockd.call(wire.release(leader, term), node=node), *no_vote(), why=f"release {leader} {term}")
        seen = await lockd.leader(node)
        expect(seen, ok(leader_id=spy.node_id, term=1000), why="the leader after a refused release")


@verifies("TC-LEAVE-11", isolation="quiet", nodes=1, waits="3*lease_settled_max")
async def test_an_accepted_release_frees_the_slot_at_once(lockd: Lockd, T: SpecTime) -> None:
    node, spy = await reported_leader(lockd, 2000)
    lasts = 2 * T.held_lease
    ttl = int(lasts * 1000)
    with lockd.context.arranging("TC-ELECT-05"):
        held = await lockd.call(wire.acquire(spy.node_id, spy.endpoint, 2000, ttl), spy.identity, node=node)
        expect(held, ok(granted=True), why="the holder repeats its request")
        renewed = await lockd.call(wire.renew(spy.node_id, 2000, ttl), spy.identity, node=node)
        expect(renewed, ok(renewed=True), why="the renewal of its lease")
    spy.report(Leader)
    rival = await lockd.call(wire.acquire("c2", lockd.url(node), 2100, ttl), node=node)
    expect(rival, *no_vote(), why="control: the slot is taken")
    released = await lockd.call(wire.release(spy.node_id, 2000), spy.identity, node=node)
    expect(released, ok(released=True), why="the holder's release")
    # Far above: the node may have used the next terms for rounds of its own in between.
    granted = await lockd.vote("c2", 2200, ttl, node, owner="TC-LEAVE-11")
    if granted.received > renewed.sent + lasts:
        what = f"the grant came when the lease would have ended anyway, {granted.received - released.received:.1f} s"
        raise Finding(
            ["a vote at once after the release"], f"{what} after the release", "an accepted release", late=True
        )
