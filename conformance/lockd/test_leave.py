"""Leave (seed: Leave, self-only; Fan-out requirement): the caller's lease, everywhere, and no other lease."""

from dataclasses import replace

from holdfast.check.finding import expect
from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.client import Lockd
from holdfast.conformance.lockd.membership import nowhere
from holdfast.conformance.lockd.spy import Spy, spies
from holdfast.conformance.lockd.spy_cluster import spy_members
from holdfast.conformance.lockd.wire import ok
from holdfast.conformance.shared.wire import moment


@verifies("TC-LEAVE-01", isolation="quiet", nodes=1, waits="silence_watch")
async def test_a_leave_removes_exactly_the_callers_lease(lockd: Lockd, T: SpecTime) -> None:
    node, x, y = lockd.lone, lockd.authority.server(name="x"), lockd.authority.server(name="y")
    await lockd.member(x, nowhere(1), node)
    await lockd.member(y, nowhere(2), node)
    answer = await lockd.leave_as(x, node)
    expect(answer, ok())
    assert nowhere(1) not in answer.endpoints, f"the answer lists the member that has left: {answer.describe()}"

    async def others_stay() -> None:
        seen = await lockd.members(node)
        assert nowhere(1) not in seen, f"the lease of the caller is still there: {seen}"
        assert {nowhere(2), lockd.url(node)} <= set(seen), f"another member was removed: {seen}"

    await lockd.throughout(others_stay, T.silence_watch, "the other members")


@verifies("TC-LEAVE-01", isolation="quiet", nodes=1)
async def test_nothing_in_a_leave_names_another_member(lockd: Lockd) -> None:
    node, x, y = lockd.lone, lockd.authority.server(name="x"), lockd.authority.server(name="y")
    await lockd.member(y, nowhere(2), node)
    for victim, end in ((lockd.node_id(node), lockd.url(node)), (y.node_id, nowhere(2))):
        claims = {"identity": victim, "node_id": victim, "endpoint": end, "self_endpoint": end}
        for guard in ({}, lockd.dialect.guard):
            await lockd.member(x, nowhere(1), node)
            forged = replace(wire.leave({**guard, "X-Identity": victim}), body=claims, query=claims)
            expect(await lockd.call(forged, x, node=node), ok(), why="the caller's own leave")
            seen = await lockd.members(node)
            assert {nowhere(2), lockd.url(node)} <= set(seen), f"a leave removed another member: {seen}"
            assert nowhere(1) not in seen, "the caller's own lease is still there"


async def _silent_about_leaves(T: SpecTime, spies_: list[Spy], since_call: wire.Answer, sender: str | None) -> None:
    await T.sleep_until(moment(since_call), T.silence_watch, "a leave that must not be sent on")
    for spy in spies_:
        late = spy.got_from(sender, wire.LEAVE, since=moment(since_call))
        assert not late, f"{spy.identity.name} got {[call.describe() for call in late]}"


@verifies("TC-LEAVE-02", isolation="quiet", nodes=1, waits="silence_watch")
async def test_a_foreign_leave_is_not_sent_on(lockd: Lockd, T: SpecTime) -> None:
    node, x = lockd.lone, lockd.authority.server(name="x")
    (spy,) = await spy_members(lockd, node, 1)
    await lockd.member(x, nowhere(1), node)
    answer = await lockd.call(wire.leave(), x, node=node)
    expect(answer, ok(), why="an unguarded leave of another identity")
    seen = await lockd.members(node)
    assert nowhere(1) not in seen, f"the caller's lease is still there: {seen}"
    assert lockd.url(node) in seen, f"the receiver removed itself: {seen}"
    await _silent_about_leaves(T, [spy], answer, lockd.node_id(node))


@verifies("TC-LEAVE-02", part=2, isolation="quiet", waits="cluster_leader_max + silence_watch")
async def test_a_foreign_leave_costs_the_receiver_nothing_at_its_peers(lockd: Lockd, T: SpecTime) -> None:
    nodes, _ = await lockd.cluster()
    a, *others = nodes
    (x,) = await spies(lockd, 1)
    await x.join(*nodes)
    x.fall_silent()
    expect(await lockd.call(wire.leave(), x.identity, node=a), ok())

    async def receiver_stays() -> None:
        for node in others:
            assert lockd.url(a) in await lockd.members(node), f"{node} dropped the receiver of a foreign leave"

    every = T.silence_watch / 25
    await lockd.throughout(receiver_stays, T.silence_watch, "the receiver at its peers", every=every)


async def _stays_out(lockd: Lockd, node: str, at: list[str], seconds: float) -> None:
    async def absent() -> None:
        for place in at:
            assert lockd.url(node) not in await lockd.members(place), f"{node} is listed at {place} after its leave"

    await lockd.throughout(absent, seconds, "the node that has left", every=lockd.T.membership_interval / 15)


@verifies("TC-LEAVE-03", isolation="quiet", nodes=1, waits="three_intervals + leave_ok_max")
async def test_a_leave_pauses_the_announcements(lockd: Lockd, T: SpecTime) -> None:
    node = lockd.lone
    (spy,) = await spy_members(lockd, node, 1)
    await spy.receives(wire.ANNOUNCE, "next_tick_max", what="control: an announce before the leave")
    left = await lockd.api_leave(node)
    expect(left, ok(), why="the leave of the node itself")
    await _stays_out(lockd, node, [node], T.three_intervals)
    late = [call for call in spy.got_from(lockd.node_id(node), wire.ANNOUNCE) if call.at > left.received]
    assert not late, f"{len(late)} announces after the leave"


@verifies("TC-LEAVE-03", part=2, isolation="quiet", waits="cluster_leader_max + three_intervals + leave_ok_max")
async def test_a_node_that_has_left_stays_out_of_all_lists(lockd: Lockd, T: SpecTime) -> None:
    nodes, _ = await lockd.cluster()
    expect(await lockd.api_leave(nodes[0]), ok())
    await _stays_out(lockd, nodes[0], nodes, T.three_intervals)


@verifies("TC-LEAVE-04", isolation="quiet", nodes=1, waits="member_expiry_settled + 2*next_tick_max + leave_ok_max")
async def test_an_explicit_announce_ends_the_pause(lockd: Lockd, T: SpecTime) -> None:
    node = lockd.lone
    (spy,) = await spy_members(lockd, node, 1)
    expect(await lockd.api_leave(node), ok())
    back = await lockd.come_back(node)
    expect(back, ok(), why="the explicit announce")
    assert lockd.url(node) in await lockd.members(node), "the node is not listed at once"
    await spy.receives(wire.ANNOUNCE, "next_tick_max", since=moment(back), what="the announcements to run again")

    async def elects() -> bool:
        return (await lockd.leader(node)).ok

    await lockd.comes(elects, "next_tick_max", since=moment(back), what="election to be on again")
    await T.sleep_until(moment(back), T.member_expiry_settled, "the lease of the explicit announce to run out")
    assert lockd.url(node) in await lockd.members(node), "the node expired: its loop is still paused"


@verifies("TC-LEAVE-04", part=2, isolation="disruptive", nodes=1, waits="converge_max + leave_ok_max")
async def test_a_restart_ends_the_pause(lockd: Lockd) -> None:
    node = lockd.lone
    (spy,) = await spy_members(lockd, node, 1)
    expect(await lockd.api_leave(node), ok())
    started = await lockd.restart(node)
    await spy.announce(node)

    async def listed() -> bool:
        return lockd.url(node) in await lockd.members(node)

    await lockd.comes(listed, "converge_max", since=started, what="the node in its own list")
    await spy.receives(wire.ANNOUNCE, "converge_max", since=started)


async def _listed_everywhere(lockd: Lockd, node: str, at: list[str], bound: str) -> None:
    async def listed() -> bool:
        return all([lockd.url(node) in await lockd.members(place) for place in at])

    await lockd.comes(listed, bound, what=f"{node} in the lists of {', '.join(at)}")


@verifies(
    "TC-LEAVE-04",
    part=3,
    isolation="quiet",
    waits="cluster_leader_max + next_tick_max + member_expiry_settled + leave_ok_max",
)
async def test_peers_list_the_node_again_after_its_announce(lockd: Lockd, T: SpecTime) -> None:
    nodes, _ = await lockd.cluster()
    a, b = nodes[:2]
    expect(await lockd.api_leave(a), ok())
    back = await lockd.come_back(a)
    expect(back, ok())
    await _listed_everywhere(lockd, a, [b], "next_tick_max")
    await T.sleep_until(moment(back), T.member_expiry_settled, "the first lease at the peer to run out")
    assert lockd.url(a) in await lockd.members(b), "the peer got no further announces"


@verifies("TC-LEAVE-04", part=4, isolation="disruptive", waits="cluster_leader_max + converge_max + leave_ok_max")
async def test_peers_list_the_node_again_after_its_restart(lockd: Lockd) -> None:
    nodes, _ = await lockd.cluster()
    expect(await lockd.api_leave(nodes[0]), ok())
    await lockd.restart(nodes[0])
    await _listed_everywhere(lockd, nodes[0], nodes, "converge_max")


@verifies("TC-LEAVE-05", isolation="quiet", nodes=1, waits="leave_ok_max")
async def test_an_own_leave_is_fanned_out_marked_and_authenticated(lockd: Lockd) -> None:
    node = lockd.lone
    pair = await spy_members(lockd, node, 2)
    left = await lockd.api_leave(node)
    expect(left, ok())
    for spy in pair:
        calls = [call for call in spy.got(wire.LEAVE, since=moment(left)) if call.at <= left.received]
        assert calls, f"{spy.identity.name} got no leave within the call"
        expect(calls[0].headers.get(lockd.dialect.guard_header), "1", why="the guard header")
        expect(calls[0].node_id, lockd.node_id(node), why="the certificate of the fan-out")


@verifies("TC-LEAVE-05", isolation="quiet", nodes=1, waits="2*silence_watch")
async def test_a_guarded_leave_is_applied_here_only(lockd: Lockd, T: SpecTime) -> None:
    node, x = lockd.lone, lockd.authority.server(name="x")
    pair = await spy_members(lockd, node, 2)
    await lockd.member(x, nowhere(1), node)
    for who, end in ((x, nowhere(1)), (lockd.own(node), lockd.url(node))):
        answer = await lockd.leave_as(who, node)
        expect(answer, ok())
        assert end not in await lockd.members(node), f"{who.name} is still listed"
        await _silent_about_leaves(T, pair, answer, None)
    await lockd.come_back(node)


@verifies("TC-LEAVE-05", part=2, isolation="quiet", waits="cluster_leader_max + leave_ok_max")
async def test_a_leave_takes_the_node_out_of_every_list(lockd: Lockd) -> None:
    nodes, _ = await lockd.cluster()
    a, *others = nodes
    expect(await lockd.api_leave(a), ok())
    rest = sorted(lockd.url(node) for node in others)
    for node in nodes:
        expect(await lockd.members(node), rest, why=f"the list of {node} right after the leave")
