"""RM registry (seed: Periodic RM registration; Register; Unregister; Replica requests)."""

from functools import partial

import pytest

from holdfast.check.finding import expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.client import Lockd
from holdfast.conformance.lockd.membership import nowhere, per_interval, store_fails, unless_calls_failed
from holdfast.conformance.lockd.spy import BROKEN, Call, Spy, spies
from holdfast.conformance.lockd.spy_cluster import spy_members
from holdfast.conformance.lockd.wire import Answer, ok, refused
from holdfast.conformance.shared.stub import Reply
from holdfast.conformance.shared.wire import Request, moment

HASH = "island-h"
E, F = nowhere(1), nowhere(2)


def _is_own(lockd: Lockd, call: Call) -> bool:
    return lockd.dialect.replica_header not in call.headers


@verifies("TC-RM-01", isolation="quiet", nodes=1, waits="5*rm_register_period")
async def test_a_server_keeps_registering_at_every_member(lockd: Lockd) -> None:
    node = lockd.lone
    pair = await spy_members(lockd, node, 2)
    own_ones = partial(_is_own, lockd)
    regular = partial(per_interval, path=wire.REGISTER, count=3, period="rm_register_period", where=own_ones)
    await lockd.parallel([partial(regular, spy) for spy in pair])
    mine = {await lockd.backend_of(node)}
    for spy in pair:
        own = [call for call in spy.got(wire.REGISTER) if _is_own(lockd, call)]
        assert len(own) >= 3, f"{spy.identity.name} got {len(own)} registrations"
        for call in own:
            expect(call.body.get("endpoint"), lockd.url(node), why="the endpoint that registers")
            expect({call.body.get("backend_hash")}, mine, why="the backend hash that registers")
            expect(call.node_id, lockd.node_id(node), why="the certificate of a registration")


@verifies("TC-RM-01", isolation="quiet", nodes=1, waits="4*rm_register_period")
async def test_a_failed_registration_does_not_end_the_series(lockd: Lockd) -> None:
    node = lockd.lone
    (spy,) = await spies(lockd, 1)
    spy.on(wire.REGISTER, BROKEN)
    await spy.join(node)
    own = partial(_is_own, lockd)
    await spy.receives(wire.REGISTER, "rm_listed_max", where=own, what="the registration that fails")
    spy.script.clear()
    since = lockd.T.now()
    await spy.receives(
        wire.REGISTER, "rm_listed_max", since=since, where=own, count=2, times=2, what="further registrations"
    )


@verifies("TC-RM-01", part=2, isolation="disruptive", waits="cluster_leader_max + rm_refill_max")
async def test_a_coordinator_that_lost_its_registry_is_refilled(lockd: Lockd) -> None:
    nodes, _ = await lockd.cluster()
    a, b, c = nodes[:3]
    await lockd.kill(b)
    started = await lockd.restart(b)

    async def refilled() -> bool:
        found = {end for backend in (await lockd.registered(b)).values() for end in backend.endpoints}
        return {lockd.url(a), lockd.url(c)} <= found

    await lockd.comes(refilled, "rm_refill_max", since=started, what="both other nodes in the registry")


@verifies("TC-RM-02", isolation="disruptive", nodes=1, waits="rm_listed_max + rm_fallback_max")
async def test_join_endpoints_get_the_registration_when_nobody_is_a_member(lockd: Lockd) -> None:
    node, (spy,) = lockd.lone, await spies(lockd, 1)
    await lockd.restart(node, join=f"{lockd.url(node)},{spy.endpoint}")
    await lockd.backend_of(node)
    left = await lockd.api_leave(node)
    expect(left, ok())
    expect(await lockd.members(node), [], why="control: the list is empty")
    call = await spy.receives(wire.REGISTER, "rm_fallback_max", since=moment(left))
    expect(call.body.get("endpoint"), lockd.url(node))


@verifies("TC-RM-02", part=2, isolation="disruptive", nodes=1, waits="rm_listed_max + rm_fallback_max")
async def test_join_endpoints_get_the_registration_while_the_list_cannot_be_read(lockd: Lockd) -> None:
    node, (seed, member) = lockd.lone, await spies(lockd, 2)
    with store_fails(lockd) as fault:
        await lockd.restart(node, join=f"{lockd.url(node)},{seed.endpoint}", fault_hook=str(fault.file))
        await member.join(node)
        await member.receives(wire.REGISTER, "rm_listed_max", what="control: the member gets registrations")
        fault.begin()
        await seed.receives(wire.REGISTER, "rm_fallback_max", since=lockd.T.now())


@verifies("TC-RM-03", isolation="quiet", nodes=1)
async def test_register_takes_backend_hash_and_endpoint(lockd: Lockd) -> None:
    node, server = lockd.lone, lockd.authority.server(name="x")
    answer = await lockd.call(wire.register(HASH, E), server, node=node)
    expect(answer, ok(backend_hash=HASH), why="a valid register")
    assert E in answer.endpoints, f"the answer lacks the endpoint: {answer.describe()}"
    assert answer.updated_at, f"the answer lacks updated_at_unix: {answer.text[:200]}"
    expect(await lockd.entries(HASH, node), [E], why="200 means stored")
    before = await _without_itself(lockd, node)
    for path in (wire.REGISTER, wire.UNREGISTER):
        for blank in ({}, {"backend_hash": ""}, {"backend_hash": "  "}):
            answer = await lockd.call(Request("POST", path, {"endpoint": E, **blank}), server, node=node)
            expect(answer, refused("missing_backend_hash"), why=f"{path} {blank}")
        for blank in ({}, {"endpoint": ""}, {"endpoint": "  "}):
            answer = await lockd.call(Request("POST", path, {"backend_hash": HASH, **blank}), server, node=node)
            expect(answer, refused("missing_endpoint"), why=f"{path} {blank}")
    expect(await _without_itself(lockd, node), before, why="the registry after refused calls")


async def _without_itself(lockd: Lockd, node: str) -> dict[str, tuple[str, ...]]:
    """Returns the registry without the node's own entry, which it may add at any time."""
    found = await lockd.registered(node)
    return {each: entry.endpoints for each, entry in found.items() if entry.endpoints != (lockd.url(node),)}


async def _leading_with(lockd: Lockd, count: int) -> tuple[str, list[Spy]]:
    node = lockd.lone
    made = await spy_members(lockd, node, count)
    await lockd.leads(node)
    return node, made


def _for_us(calls: list[Call]) -> list[Call]:
    return [call for call in calls if call.body.get("backend_hash") == HASH]


@verifies("TC-RM-04", isolation="quiet", nodes=1, waits="lease_settled_max + 2*rm_call_max + 2*replica_held")
async def test_a_change_reaches_all_members_before_the_answer(lockd: Lockd, T: SpecTime) -> None:
    node, (first, second) = await _leading_with(lockd, 2)
    server = lockd.authority.server(name="x")
    for request, there in ((wire.register(HASH, E), [E]), (wire.unregister(HASH, E), [])):
        second.on(request.path, Reply(200, {"backend_hash": HASH, "endpoints": there}, hold=T.replica_held))
        since = T.now()
        changing = lockd.beside(lockd.call(request, server, node=node))
        with unless_calls_failed(lockd, since, first):
            held = await second.receives(
                request.path, "rm_call_max", since=since, where=lambda call: call.body.get("backend_hash") == HASH
            )
        seen = await lockd.call(wire.backends(), node=node)
        if seen.received < held.at + T.replica_held:
            ends = sorted(seen.backends[HASH].endpoints) if HASH in seen.backends else []
            expect(ends, there, why=f"{request.path}: the local write comes before the replicas")
        answer: Answer = await changing
        with unless_calls_failed(lockd, since, first, second):
            expect(answer, ok(), why=request.path)
        for spy in (first, second):
            taken = [call.answered for call in _for_us(spy.got(request.path, since=since))]
            assert taken and taken[0] and taken[0] <= answer.received, f"{spy.identity.name} had not taken the replica"
    assert HASH not in await lockd.registered(node), "an empty hash is listed"


@verifies("TC-RM-04", isolation="quiet", nodes=1, waits="lease_settled_max")
async def test_replicas_go_to_who_is_a_member_now(lockd: Lockd, T: SpecTime) -> None:
    node, (known,) = await _leading_with(lockd, 1)
    server, (third,) = lockd.authority.server(name="x"), await spies(lockd, 1)
    await third.join(node)
    since = T.now()
    answer = await lockd.call(wire.register(HASH, E), server, node=node)
    with unless_calls_failed(lockd, since, known, third):
        expect(answer, ok())
    assert _for_us(third.got(wire.REGISTER, since=since)), "the member that joined just before got no replica"
    await third.leave(node)
    for path in (wire.LEADER, wire.REGISTER, wire.UNREGISTER):
        third.on(path, BROKEN)
    since = T.now()
    answer = await lockd.call(wire.register(HASH, F), server, node=node)
    with unless_calls_failed(lockd, since, known):
        expect(answer, ok(), why="a member that left cannot make a register fail")
    assert not _for_us(third.got(wire.REGISTER, since=since)), "who left got a replica"


@verifies("TC-RM-04", part=2, isolation="quiet", waits="cluster_leader_max")
async def test_a_change_is_in_force_on_every_node(lockd: Lockd) -> None:
    nodes, _ = await lockd.cluster()
    server = lockd.authority.server(name="x")
    for request, there in ((wire.register(HASH, E), [E]), (wire.unregister(HASH, E), [])):
        since = lockd.T.now()
        answer = await lockd.call(request, server, node=nodes[0])
        with unless_calls_failed(lockd, since):
            expect(answer, ok(), why=request.path)
        for node in nodes:
            expect(await lockd.entries(HASH, node), there, why=f"{request.path}, seen at {node}")


async def _fails(lockd: Lockd, request: Request, node: str) -> Answer:
    answer = await lockd.call(request, lockd.authority.server(name="x"), node=node)
    expect(answer.status, lockd.T.count("replication_failed_status"), why=f"status of a failed {request.path}")
    expect(answer, refused("tc_rm_replication_failed"), why=request.path)
    return answer


@pytest.mark.parametrize("trouble", ["refuses", "closed"])
@verifies("TC-RM-05", isolation="quiet", nodes=1, waits="lease_settled_max + 2*rm_call_max")
async def test_peers_are_probed_before_anything_changes(lockd: Lockd, T: SpecTime, trouble: str) -> None:
    node, (first, second) = await _leading_with(lockd, 2)
    since, server = T.now(), lockd.authority.server(name="x")
    answer = await lockd.call(wire.register(HASH, E), server, node=node)
    expect(answer, ok(), why="control: everybody answers the probe")
    for spy in (first, second):
        write, probes = _for_us(spy.got(wire.REGISTER, since=since))[0], spy.got(wire.LEADER, since=since)
        assert any(probe.at <= write.at for probe in probes), f"{spy.identity.name} was written to without a probe"
    if trouble == "closed":
        await second.close()
    else:
        second.on(wire.LEADER, BROKEN)
    for request in (wire.register(HASH, F), wire.unregister(HASH, E)):
        since = T.now()
        answer = await _fails(lockd, request, node)
        T.at_most("rm_call_max", since=Moment(answer.sent, answer.sent), seen=T.now(), what="the failed call")
        expect(await lockd.entries(HASH, node), [E], why=f"the registry after a failed {request.path}")
        late = [call.describe() for spy in (first, second) for call in _for_us(spy.got(request.path, since=since))]
        assert not late, f"written to although the probe failed: {late}"


@verifies("TC-RM-05", part=2, isolation="quiet", nodes=2, waits="cluster_leader_max + rm_call_max")
async def test_a_failed_probe_leaves_real_peers_unchanged(lockd: Lockd) -> None:
    a, b = lockd.nodes[:2]
    await lockd.introduce(a, b)
    await lockd.agreed(a, b)
    (spy,) = await spies(lockd, 1)
    await spy.join(a, b)
    spy.on(wire.LEADER, BROKEN)
    await _fails(lockd, wire.register(HASH, E), a)
    expect(await lockd.entries(HASH, b), [], why="the peer's registry")


@verifies("TC-RM-06", isolation="quiet", nodes=1, waits="lease_settled_max")
async def test_a_failed_replica_is_rolled_back_here(lockd: Lockd) -> None:
    node, (spy,) = await _leading_with(lockd, 1)
    spy.on(wire.REGISTER, BROKEN)
    await _fails(lockd, wire.register(HASH, E), node)
    expect(await lockd.entries(HASH, node), [], why="the failed register")
    spy.script.clear()
    server = lockd.authority.server(name="x")
    expect(await lockd.call(wire.register(HASH, E), server, node=node), ok(), why="control: the peer accepts")
    spy.on(wire.UNREGISTER, BROKEN)
    await _fails(lockd, wire.unregister(HASH, E), node)
    expect(await lockd.entries(HASH, node), [E], why="the failed unregister")


async def _undone(lockd: Lockd, spy: Spy, *, there: bool) -> None:
    async def undone() -> bool:
        return ((HASH, E) in spy.kept) is there

    await lockd.comes(undone, "undo_max", what=f"the undo at {spy.identity.name}")


@verifies("TC-RM-07", isolation="quiet", nodes=1, waits="lease_settled_max + 2*undo_max")
async def test_a_failed_replica_leaves_no_peer_changed(lockd: Lockd) -> None:
    node, (first, last) = await _leading_with(lockd, 2)
    last.on(wire.REGISTER, BROKEN)
    await _fails(lockd, wire.register(HASH, E), node)
    expect(await lockd.entries(HASH, node), [], why="the failed register")
    await _undone(lockd, first, there=False)
    last.script.clear()
    server = lockd.authority.server(name="x")
    expect(await lockd.call(wire.register(HASH, E), server, node=node), ok(), why="control: everybody accepts")
    assert (HASH, E) in first.kept, "control: the first peer accepted the register"
    last.on(wire.UNREGISTER, BROKEN)
    await _fails(lockd, wire.unregister(HASH, E), node)
    expect(await lockd.entries(HASH, node), [E], why="the failed unregister")
    await _undone(lockd, first, there=True)


@verifies("TC-RM-07", part=2, isolation="quiet", waits="cluster_leader_max + 2*undo_max")
async def test_a_failed_replica_leaves_no_real_peer_changed(lockd: Lockd) -> None:
    nodes, _ = await lockd.cluster()
    (spy,) = await spies(lockd, 1)
    await spy.join(*nodes)

    async def everywhere(there: list[str]) -> None:
        async def look() -> bool:
            return all([await lockd.entries(HASH, node) == there for node in nodes])

        await lockd.comes(look, "undo_max", what=f"{there} in all registries")

    spy.on(wire.REGISTER, BROKEN)
    await _fails(lockd, wire.register(HASH, E), nodes[0])
    await everywhere([])
    spy.script.clear()
    expect(await lockd.call(wire.register(HASH, E), lockd.authority.server(name="x"), node=nodes[0]), ok())
    spy.on(wire.UNREGISTER, BROKEN)
    await _fails(lockd, wire.unregister(HASH, E), nodes[0])
    await everywhere([E])


@verifies("TC-RM-08", isolation="quiet", nodes=1, waits="lease_settled_max")
async def test_a_repeated_register_changes_nothing(lockd: Lockd) -> None:
    node, (spy,) = await _leading_with(lockd, 1)
    server = lockd.authority.server(name="x")
    first = await lockd.call(wire.register(HASH, E), server, node=node)
    before = (await lockd.registered(node))[HASH]
    again = await lockd.call(wire.register(HASH, E), server, node=node)
    for answer in (first, again):
        expect(answer, ok(endpoints=[E]), why="the same pair")
    expect((await lockd.registered(node))[HASH], before, why="entry and updated_at_unix after a repeated register")
    for path in (wire.REGISTER, wire.UNREGISTER):
        spy.on(path, BROKEN)
    await _fails(lockd, wire.register(HASH, E), node)
    expect(await lockd.entries(HASH, node), [E], why="a failed repeated register takes nothing away")
    await _fails(lockd, wire.unregister(HASH, F), node)
    expect(await lockd.entries(HASH, node), [E], why="a failed unregister of an unknown pair adds nothing")


async def _accepted(lockd: Lockd, node: str) -> bool:
    answer = await lockd.call(wire.register(HASH, E), lockd.authority.server(name="x"), node=node)
    expect(answer, ok(), refused("tc_rm_replication_failed"))
    return answer.ok


async def _blocked_while_listed(lockd: Lockd, node: str, endpoint: str, since: Moment) -> None:
    """Judges that a register fails while the dead member is listed, and succeeds once it is not."""

    async def look() -> bool:
        before = endpoint in await lockd.members(node)
        accepted = await _accepted(lockd, node)
        assert not (accepted and before and endpoint in await lockd.members(node)), (
            "a register succeeded without a dead member that was still listed"
        )
        return accepted

    assert not await look(), "a register succeeded although a member is unreachable"
    await lockd.comes(look, "member_expiry_settled", since=since, what="a register after the dead member's expiry")


@verifies("TC-RM-09", isolation="quiet", nodes=1, waits="lease_settled_max + member_expiry_settled")
async def test_a_crashed_member_blocks_changes_until_it_expires(lockd: Lockd) -> None:
    node, (spy,) = await _leading_with(lockd, 1)
    spy.fall_silent()
    closed = await spy.close()
    await _blocked_while_listed(lockd, node, spy.endpoint, closed)


@verifies("TC-RM-09", isolation="quiet", nodes=1, waits="lease_settled_max + rm_call_max")
async def test_a_member_that_comes_back_ends_the_block(lockd: Lockd) -> None:
    node, (spy,) = await _leading_with(lockd, 1)
    await spy.close()
    assert not await _accepted(lockd, node), "a register succeeded although a member is unreachable"
    await spy.open()
    await lockd.comes(lambda: _accepted(lockd, node), "rm_call_max", what="a register once the member answers")


@verifies("TC-RM-09", part=2, isolation="disruptive", waits="cluster_leader_max + member_expiry_settled")
async def test_a_killed_node_blocks_changes_until_it_expires(lockd: Lockd) -> None:
    nodes, _ = await lockd.cluster()
    killed = await lockd.kill(nodes[-1])
    await _blocked_while_listed(lockd, nodes[0], lockd.url(nodes[-1]), killed)


@verifies("TC-RM-09", part=3, isolation="disruptive", waits="cluster_leader_max + rm_call_max")
async def test_a_restarted_node_ends_the_block(lockd: Lockd) -> None:
    nodes, _ = await lockd.cluster()
    await lockd.kill(nodes[-1])
    assert not await _accepted(lockd, nodes[0]), "a register succeeded although a member is unreachable"
    await lockd.restart(nodes[-1])
    await lockd.comes(lambda: _accepted(lockd, nodes[0]), "rm_call_max", what="a register once the node answers")


@verifies("TC-RM-10", isolation="quiet", nodes=1, waits="lease_settled_max + 2*silence_watch")
async def test_replicas_are_marked_and_applied_here_only(lockd: Lockd, T: SpecTime) -> None:
    node, (spy,) = await _leading_with(lockd, 1)
    server = lockd.authority.server(name="x")
    for request in (wire.register(HASH, E), wire.unregister(HASH, E)):
        since = T.now()
        expect(await lockd.call(request, server, node=node), ok())
        call = _for_us(spy.got(request.path, since=since))[0]
        expect(call.headers.get(lockd.dialect.replica_header), "1", why="the replica header")
        expect(dict(call.body), request.body, why="the replicated call")
    for make, there in ((wire.register, [E]), (wire.unregister, [])):
        since = T.now()
        expect(await lockd.call(make(HASH, E, lockd.dialect.replica), server, node=node), ok())
        expect(await lockd.entries(HASH, node), there, why="a replica is applied here")
        await T.sleep(T.silence_watch, "a replica that must not be sent on")
        calls = [call for path in (wire.REGISTER, wire.UNREGISTER) for call in spy.got(path, since=since)]
        assert not _for_us(calls), f"sent on: {[call.describe() for call in _for_us(calls)]}"


@verifies("TC-RM-10", part=2, isolation="quiet", waits="cluster_leader_max")
async def test_a_replica_changes_one_node_only(lockd: Lockd) -> None:
    nodes, _ = await lockd.cluster()
    a, b = nodes[:2]
    server, mark = lockd.authority.server(name="x"), lockd.dialect.replica
    expect(await lockd.call(wire.register(HASH, E, mark), server, node=a), ok())
    expect(await lockd.entries(HASH, b), [], why="a replica to one node does not show at another")
    expect(await lockd.call(wire.register(HASH, E, mark), server, node=b), ok())
    expect(await lockd.call(wire.unregister(HASH, E, mark), server, node=a), ok())
    expect((await lockd.entries(HASH, a), await lockd.entries(HASH, b)), ([], [E]), why="each node for itself")
