"""Leave (seed: Leave, self-only; Fan-out requirement): the caller's lease, everywhere, and no other lease."""

from collections.abc import Sequence
from dataclasses import replace

from holdfast.check.finding import demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.client import Lockd
from holdfast.conformance.lockd.judge import demand_none, names, told
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
    expect(answer, ok(), why="the guarded leave of a member")
    demand(nowhere(1) not in answer.endpoints, f"an answer without {nowhere(1)}, which has left", answer.describe())

    async def others_stay() -> None:
        await lockd.lacks(node, nowhere(1), why="its member has left")
        await lockd.lists(node, nowhere(2), lockd.endpoint(node), why="another member has left")

    await lockd.throughout(others_stay, T.silence_watch, "the other members")


@verifies("TC-LEAVE-01", isolation="quiet", nodes=1, waits="leave_reject_max")
async def test_nothing_in_a_leave_names_another_member(lockd: Lockd) -> None:
    """Both members answer calls: a node that sends the leave on, which another row forbids, is not kept waiting."""
    node, (x, y) = lockd.lone, await spies(lockd, 2)
    await lockd.member(y.identity, y.endpoint, node)
    for victim, end in ((lockd.node_id(node), lockd.endpoint(node)), (y.node_id, y.endpoint)):
        claims = {"identity": victim, "node_id": victim, "endpoint": end, "self_endpoint": end}
        for guard, owner in (({}, "TC-LEAVE-02"), (lockd.dialect.guard, "TC-LEAVE-01")):
            await lockd.member(x.identity, x.endpoint, node)
            forged = replace(wire.leave({**guard, "X-Identity": victim}), body=claims, query=claims)
            answer = await lockd.call(forged, x.identity, node=node)
            await lockd.lists(node, y.endpoint, lockd.endpoint(node), why="a leave that names them")
            if 400 <= answer.status < 500:  # a node may refuse fields that it does not know
                answer = await lockd.leave_as(x.identity, node)
            with lockd.context.arranging(owner):
                expect(answer, ok(), why="the caller's own leave")
            await lockd.lacks(node, x.endpoint, why="the caller itself has left")


def _nothing_sent_on(spies_: Sequence[Spy], since: Moment, sender: str | None) -> None:
    for spy in spies_:
        why = "a leave under the receiver's own certificate takes the receiver out, and not the one who left"
        demand_none(spy.got_from(sender, wire.LEAVE, since=since), f"no leave sent on to {spy.name}", why)


async def _silent_about_leaves(T: SpecTime, spies_: list[Spy], since: Moment, sender: str | None) -> None:
    await T.sleep_until(since, T.silence_watch, "a leave that must not be sent on")
    _nothing_sent_on(spies_, since, sender)


@verifies("TC-LEAVE-02", isolation="quiet", nodes=1, waits="silence_watch + leave_reject_max")
async def test_a_foreign_leave_is_not_sent_on(lockd: Lockd, T: SpecTime) -> None:
    """Looks at the spies while the call is under way: a node that sends the leave on may be long about it."""
    node, (x, witness) = lockd.lone, await spies(lockd, 2)
    await witness.join(node)
    await lockd.member(x.identity, x.endpoint, node)
    since, me = T.now(), lockd.node_id(node)
    leaving = lockd.beside(lockd.call(wire.leave(), x.identity, node=node))
    while not leaving.done():
        _nothing_sent_on((x, witness), since, me)
        await T.sleep(lockd.look_every, "the answer")
    _nothing_sent_on((x, witness), since, me)
    expect(await leaving, ok(), why="an unguarded leave of another identity")
    await lockd.lacks(node, x.endpoint, why="its member has left")
    await lockd.lists(node, lockd.endpoint(node), why="the receiver has not left")
    await _silent_about_leaves(T, [x, witness], since, me)


@verifies("TC-LEAVE-02", part=2, isolation="quiet", waits="cluster_leader_max + silence_watch + leave_reject_max")
async def test_a_foreign_leave_costs_the_receiver_nothing_at_its_peers(lockd: Lockd, T: SpecTime) -> None:
    nodes, _ = await lockd.cluster()
    a, *others = nodes
    (x,) = await spies(lockd, 1)
    await x.join(*nodes)
    x.fall_silent()

    async def receiver_stays() -> None:
        for node in others:
            await lockd.lists(node, lockd.endpoint(a), why=f"{a} has only received the leave of another member")

    every, since = T.silence_watch / 25, T.now()
    leaving = lockd.beside(lockd.call(wire.leave(), x.identity, node=a))
    while not leaving.done():
        _nothing_sent_on([x], since, lockd.node_id(a))
        await receiver_stays()
        await T.sleep(every, "the answer")
    _nothing_sent_on([x], since, lockd.node_id(a))
    await lockd.throughout(receiver_stays, T.silence_watch, "the receiver at its peers", every=every)
    expect(await leaving, ok(), why="an unguarded leave of another identity")


async def _stays_out(lockd: Lockd, node: str, at: list[str], seconds: float) -> None:
    async def absent() -> None:
        for place in at:
            await lockd.lacks(place, lockd.endpoint(node), why="it has left")

    await lockd.throughout(absent, seconds, "the node that has left", every=lockd.T.membership_interval / 15)


@verifies("TC-LEAVE-03", isolation="quiet", nodes=1, waits="three_intervals + leave_reject_max")
async def test_a_leave_pauses_the_announcements(lockd: Lockd, T: SpecTime) -> None:
    node = lockd.lone
    (spy,) = await spy_members(lockd, node, 1)
    await spy.awaits("TC-LOOP-02", wire.ANNOUNCE, "next_tick_max", what="control: an announce before the leave")
    left = await lockd.goes(node)
    await _stays_out(lockd, node, [node], T.three_intervals)
    late = [call for call in spy.got_from(lockd.node_id(node), wire.ANNOUNCE) if call.at > left.received]
    demand_none(late, "no announce after the leave")


@verifies("TC-LEAVE-03", part=2, isolation="quiet", waits="cluster_leader_max + three_intervals + leave_reject_max")
async def test_a_node_that_has_left_stays_out_of_all_lists(lockd: Lockd, T: SpecTime) -> None:
    nodes, _ = await lockd.cluster()
    await lockd.goes(nodes[0])
    await _stays_out(lockd, nodes[0], nodes, T.three_intervals)


@verifies("TC-LEAVE-04", isolation="quiet", nodes=1, waits="member_expiry_settled + 2*next_tick_max + leave_reject_max")
async def test_an_explicit_announce_ends_the_pause(lockd: Lockd, T: SpecTime) -> None:
    node = lockd.lone
    (spy,) = await spy_members(lockd, node, 1)
    await lockd.goes(node)
    back = await lockd.returns(node)
    await lockd.lists(node, lockd.endpoint(node), why="it has just announced itself")
    await spy.receives(wire.ANNOUNCE, "next_tick_max", since=moment(back), what="the announcements to run again")

    async def elects() -> bool:
        return (await lockd.leader(node)).ok

    await lockd.comes(elects, "next_tick_max", since=moment(back), what="election to be on again")
    await T.sleep_until(moment(back), T.member_expiry_settled, "the lease of the explicit announce to run out")
    await lockd.lists(node, lockd.endpoint(node), why="its loop announces it again")


@verifies("TC-LEAVE-04", part=2, isolation="disruptive", nodes=1, waits="converge_max + leave_reject_max")
async def test_a_restart_ends_the_pause(lockd: Lockd) -> None:
    node = lockd.lone
    (spy,) = await spy_members(lockd, node, 1)
    await lockd.goes(node)
    started = await lockd.restart(node)
    await spy.announce(node)

    async def listed() -> bool:
        return lockd.endpoint(node) in await lockd.members(node)

    await lockd.comes(listed, "converge_max", since=started, what="the node in its own list")
    await spy.receives(wire.ANNOUNCE, "converge_max", since=started)


async def _listed_everywhere(lockd: Lockd, node: str, at: list[str], bound: str) -> None:
    async def listed() -> bool:
        return all([lockd.endpoint(node) in await lockd.members(place) for place in at])

    await lockd.comes(listed, bound, what=f"{node} in the lists of {', '.join(at)}")


@verifies(
    "TC-LEAVE-04",
    part=3,
    isolation="quiet",
    waits="cluster_leader_max + next_tick_max + member_expiry_settled + leave_reject_max",
)
async def test_peers_list_the_node_again_after_its_announce(lockd: Lockd, T: SpecTime) -> None:
    nodes, _ = await lockd.cluster()
    a, b = nodes[:2]
    await lockd.goes(a)
    back = await lockd.returns(a)
    await _listed_everywhere(lockd, a, [b], "next_tick_max")
    await T.sleep_until(moment(back), T.member_expiry_settled, "the first lease at the peer to run out")
    await lockd.lists(b, lockd.endpoint(a), why="its loop announces it again")


@verifies("TC-LEAVE-04", part=4, isolation="disruptive", waits="cluster_leader_max + converge_max + leave_reject_max")
async def test_peers_list_the_node_again_after_its_restart(lockd: Lockd) -> None:
    nodes, _ = await lockd.cluster()
    await lockd.goes(nodes[0])
    await lockd.restart(nodes[0])
    await _listed_everywhere(lockd, nodes[0], nodes, "converge_max")


@verifies("TC-LEAVE-05", isolation="quiet", nodes=1, waits="leave_reject_max")
async def test_an_own_leave_is_fanned_out_marked_and_authenticated(lockd: Lockd) -> None:
    node = lockd.lone
    pair = await spy_members(lockd, node, 2)
    left = await lockd.goes(node)
    for spy in pair:
        calls = [call for call in spy.got(wire.LEAVE, since=moment(left)) if call.at <= left.received]
        demand(calls, f"a leave at {spy.name} before the answer", told(spy.got(wire.LEAVE)))
        marked = calls[0].marked(lockd.dialect.guard_header)
        demand(marked, f"a leave with the header {lockd.dialect.guard_header}", calls[0].describe())
        calls[0].comes_from(lockd.node_id(node), "the certificate of the fan-out")


@verifies("TC-LEAVE-05", isolation="quiet", nodes=1, waits="2*silence_watch")
async def test_a_guarded_leave_is_applied_here_only(lockd: Lockd, T: SpecTime) -> None:
    node, x = lockd.lone, lockd.authority.server(name="x")
    pair = await spy_members(lockd, node, 2)
    await lockd.member(x, nowhere(1), node)
    for who, end in ((x, nowhere(1)), (lockd.own(node), lockd.endpoint(node))):
        answer = await lockd.leave_as(who, node)
        expect(answer, ok(), why=f"the guarded leave of {who.name}")
        await lockd.lacks(node, end, why=f"{who.name} has left")
        await _silent_about_leaves(T, pair, moment(answer), None)
    await lockd.come_back(node)


@verifies("TC-LEAVE-05", part=2, isolation="quiet", waits="cluster_leader_max + leave_reject_max")
async def test_a_leave_takes_the_node_out_of_every_list(lockd: Lockd) -> None:
    nodes, _ = await lockd.cluster()
    a, *others = nodes
    await lockd.goes(a)
    rest = names(sorted(lockd.endpoint(node) for node in others))
    for node in nodes:
        expect(names(sorted(await lockd.members(node))), rest, why=f"the list of {node} right after the leave")
