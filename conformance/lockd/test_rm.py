"""RM registry (seed: Register; Unregister; Replica requests)."""

import json

import pytest

from holdfast.check.finding import Inconclusive, demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.client import Lockd
from holdfast.conformance.lockd.judge import demand_none, names, told
from holdfast.conformance.lockd.membership import nowhere, unless_calls_failed
from holdfast.conformance.lockd.spy import BROKEN, Call, Spy, spies
from holdfast.conformance.lockd.spy_cluster import spy_members
from holdfast.conformance.lockd.wire import Answer, ok, refused
from holdfast.conformance.shared.stub import Reply
from holdfast.conformance.shared.wire import Request

HASH = "island-h"
E, F = nowhere(1), nowhere(2)


@verifies("TC-RM-03", isolation="quiet", nodes=1)
async def test_register_takes_backend_hash_and_endpoint(lockd: Lockd) -> None:
    node, server = lockd.lone, lockd.authority.server(name="x")
    answer = await lockd.call(wire.register(HASH, E), server, node=node)
    expect(answer, ok(backend_hash=HASH), why="a valid register")
    demand(E in answer.endpoints, f"an answer that lists {E}", answer.describe())
    demand(answer.updated_at, "an answer with updated_at_unix", answer.text)
    await _holds(lockd, node, [E], "200 means stored")
    before = await _without_itself(lockd, node)
    for path in (wire.REGISTER, wire.UNREGISTER):
        for blank in ({}, {"backend_hash": ""}, {"backend_hash": "  "}):
            answer = await lockd.call(Request("POST", path, {"endpoint": E, **blank}), server, node=node)
            with lockd.context.collect():
                expect(answer, refused("missing_backend_hash"), why=f"{path}, backend_hash {json.dumps(blank)}")
        for blank in ({}, {"endpoint": ""}, {"endpoint": "  "}):
            answer = await lockd.call(Request("POST", path, {"backend_hash": HASH, **blank}), server, node=node)
            with lockd.context.collect():
                expect(answer, refused("missing_endpoint"), why=f"{path}, endpoint {json.dumps(blank)}")
    expect(await _without_itself(lockd, node), before, why="the registry after refused calls")


async def _without_itself(lockd: Lockd, node: str) -> str:
    """Returns the registry without the node's own entry, which it may add at any time."""
    found = await lockd.registered(node)
    return names(
        f"{each} ({names(entry.endpoints)})"
        for each, entry in sorted(found.items())
        if entry.endpoints != (lockd.endpoint(node),)
    )


async def _holds(lockd: Lockd, node: str, wanted: list[str], why: str) -> None:
    """Raises Finding unless the node has registered exactly these endpoints for our backend hash."""
    expect(names(await lockd.entries(HASH, node)), names(sorted(wanted)), why=f"{why}, at {node}")


async def _changes(lockd: Lockd, request: Request, node: str) -> Answer:
    """Makes a change that only prepares the check."""
    return await lockd.arrange("TC-RM-04", request, lockd.authority.server(name="x"), node=node)


async def _leading_with(lockd: Lockd, count: int) -> tuple[str, list[Spy]]:
    node = lockd.lone
    made = await spy_members(lockd, node, count)
    await lockd.leads(node)
    return node, made


def _for_us(calls: list[Call]) -> list[Call]:
    return [call for call in calls if call.backend == HASH]


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
                request.path, "rm_call_max", since=since, where=lambda call: call.backend == HASH
            )
        seen = await lockd.call(wire.backends(), node=node)
        if seen.received > held.at + T.replica_held:
            raise Inconclusive("the suite looked after the replica was answered")
        ends = sorted(seen.backends[HASH].endpoints) if HASH in seen.backends else []
        expect(names(ends), names(there), why=f"{request.path}: the local write comes before the replicas")
        answer: Answer = await changing
        with unless_calls_failed(lockd, since, first, second):
            expect(answer, ok(), why=request.path)
        for spy in (first, second):
            calls = _for_us(spy.got(request.path, since=since))
            taken = [call.answered for call in calls if call.answered and call.answered <= answer.received]
            demand(taken, f"a replica that {spy.name} has taken before the answer", told(calls), request.path)
    listed = sorted(await lockd.registered(node))
    demand(HASH not in listed, f"no {HASH}, which has no endpoint left", names(listed))


@verifies("TC-RM-04", isolation="quiet", nodes=1, waits="lease_settled_max")
async def test_replicas_go_to_who_is_a_member_now(lockd: Lockd, T: SpecTime) -> None:
    node, (known,) = await _leading_with(lockd, 1)
    server, (third,) = lockd.authority.server(name="x"), await spies(lockd, 1)
    await third.join(node)
    since = T.now()
    answer = await lockd.call(wire.register(HASH, E), server, node=node)
    with unless_calls_failed(lockd, since, known, third):
        expect(answer, ok(), why="a register")
    there = _for_us(third.got(wire.REGISTER, since=since))
    demand(there, f"a replica at {third.name}, which joined just before", "none")
    await third.leave(node)
    for path in (wire.LEADER, wire.REGISTER, wire.UNREGISTER):
        third.on(path, BROKEN)
    since = T.now()
    answer = await lockd.call(wire.register(HASH, F), server, node=node)
    with unless_calls_failed(lockd, since, known):
        expect(answer, ok(), why="a member that left cannot make a register fail")
    demand_none(_for_us(third.got(wire.REGISTER, since=since)), f"no replica at {third.name}, which has left")


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
            await _holds(lockd, node, there, request.path)


async def _fails(lockd: Lockd, request: Request, node: str) -> Answer:
    answer = await lockd.call(request, lockd.authority.server(name="x"), node=node)
    status = lockd.T.count("replication_failed_status")
    demand(answer.status == status, f"status {status}", answer.describe(), f"a failed {request.path}")
    expect(answer, refused("tc_rm_replication_failed"), why=request.path)
    return answer


@pytest.mark.parametrize("trouble", ["refuses", "closed"])
@verifies("TC-RM-05", isolation="quiet", nodes=1, waits="lease_settled_max + 2*rm_call_max")
async def test_peers_are_probed_before_anything_changes(lockd: Lockd, T: SpecTime, trouble: str) -> None:
    node, (first, second) = await _leading_with(lockd, 2)
    since = T.now()
    await _changes(lockd, wire.register(HASH, E), node)  # control: everybody answers the probe
    for spy in (first, second):
        writes, probes = _for_us(spy.got(wire.REGISTER, since=since)), spy.got(wire.LEADER, since=since)
        with lockd.context.arranging("TC-RM-04"):
            demand(writes, f"a replica at {spy.name}", "none")
        probed = any(probe.at <= writes[0].at for probe in probes)
        demand(probed, f"a probe of {spy.name} before the write", writes[0].describe())
    if trouble == "closed":
        await second.close()
    else:
        second.on(wire.LEADER, BROKEN)
    for request in (wire.register(HASH, F), wire.unregister(HASH, E)):
        since = T.now()
        answer = await _fails(lockd, request, node)
        T.at_most("rm_call_max", since=Moment(answer.sent, answer.sent), seen=T.now(), what="the failed call")
        await _holds(lockd, node, [E], f"the registry after a failed {request.path}")
        late = [call for spy in (first, second) for call in _for_us(spy.got(request.path, since=since))]
        demand_none(late, "no write after a failed probe")


@verifies("TC-RM-05", part=2, isolation="quiet", nodes=2, waits="cluster_leader_max + rm_call_max")
async def test_a_failed_probe_leaves_real_peers_unchanged(lockd: Lockd) -> None:
    a, b = lockd.nodes[:2]
    await lockd.introduce(a, b)
    await lockd.agreed(a, b)
    (spy,) = await spies(lockd, 1)
    await spy.join(a, b)
    spy.on(wire.LEADER, BROKEN)
    await _fails(lockd, wire.register(HASH, E), a)
    await _holds(lockd, b, [], "the peer's registry")


@verifies("TC-RM-06", isolation="quiet", nodes=1, waits="lease_settled_max")
async def test_a_failed_replica_is_rolled_back_here(lockd: Lockd) -> None:
    node, (spy,) = await _leading_with(lockd, 1)
    spy.on(wire.REGISTER, BROKEN)
    await _fails(lockd, wire.register(HASH, E), node)
    await _holds(lockd, node, [], "the failed register")
    spy.script.clear()
    await _changes(lockd, wire.register(HASH, E), node)  # control: the peer accepts
    spy.on(wire.UNREGISTER, BROKEN)
    await _fails(lockd, wire.unregister(HASH, E), node)
    await _holds(lockd, node, [E], "the failed unregister")


async def _undone(lockd: Lockd, spy: Spy, *, there: bool) -> None:
    async def undone() -> bool:
        return ((HASH, E) in spy.kept) is there

    await lockd.comes(undone, "undo_max", what=f"the undo at {spy.identity.name}")


@verifies("TC-RM-07", isolation="quiet", nodes=1, waits="lease_settled_max + 2*undo_max")
async def test_a_failed_replica_leaves_no_peer_changed(lockd: Lockd) -> None:
    node, (first, last) = await _leading_with(lockd, 2)
    last.on(wire.REGISTER, BROKEN)
    await _fails(lockd, wire.register(HASH, E), node)
    await _holds(lockd, node, [], "the failed register")
    await _undone(lockd, first, there=False)
    last.script.clear()
    await _changes(lockd, wire.register(HASH, E), node)  # control: everybody accepts
    with lockd.context.arranging("TC-RM-04"):
        demand((HASH, E) in first.kept, f"control: a register that {first.name} has accepted", "none")
    last.on(wire.UNREGISTER, BROKEN)
    await _fails(lockd, wire.unregister(HASH, E), node)
    await _holds(lockd, node, [E], "the failed unregister")
    await _undone(lockd, first, there=True)


@verifies("TC-RM-07", part=2, isolation="quiet", waits="cluster_leader_max + 2*undo_max")
async def test_a_failed_replica_leaves_no_real_peer_changed(lockd: Lockd) -> None:
    nodes, _ = await lockd.cluster()
    (spy,) = await spies(lockd, 1)
    await spy.join(*nodes)

    async def everywhere(there: list[str]) -> None:
        async def look() -> bool:
            return all([await lockd.entries(HASH, node) == there for node in nodes])

        await lockd.comes(look, "undo_max", what=f"{names(there)} in all registries")

    spy.on(wire.REGISTER, BROKEN)
    await _fails(lockd, wire.register(HASH, E), nodes[0])
    await everywhere([])
    spy.script.clear()
    await _changes(lockd, wire.register(HASH, E), nodes[0])
    spy.on(wire.UNREGISTER, BROKEN)
    await _fails(lockd, wire.unregister(HASH, E), nodes[0])
    await everywhere([E])


@verifies("TC-RM-08", isolation="quiet", nodes=1, waits="lease_settled_max")
async def test_a_repeated_register_changes_nothing(lockd: Lockd) -> None:
    node, (spy,) = await _leading_with(lockd, 1)
    server = lockd.authority.server(name="x")
    first = await _changes(lockd, wire.register(HASH, E), node)
    before = (await lockd.registered(node)).get(HASH)
    again = await lockd.call(wire.register(HASH, E), server, node=node)
    for answer in (first, again):
        expect(answer, ok(endpoints=[E]), why="the same pair")
    after = (await lockd.registered(node)).get(HASH)
    same = after is not None and after == before
    demand(same, _entry(before), _entry(after), "entry and updated_at_unix after a repeated register")
    for path in (wire.REGISTER, wire.UNREGISTER):
        spy.on(path, BROKEN)
    await _fails(lockd, wire.register(HASH, E), node)
    await _holds(lockd, node, [E], "a failed repeated register takes nothing away")
    await _fails(lockd, wire.unregister(HASH, F), node)
    await _holds(lockd, node, [E], "a failed unregister of an unknown pair adds nothing")


def _entry(backend: wire.Backend | None) -> str:
    return backend.describe() if backend else "no entry"


async def _accepted(lockd: Lockd, node: str) -> bool:
    answer = await lockd.call(wire.register(HASH, E), lockd.authority.server(name="x"), node=node)
    expect(answer, ok(), refused("tc_rm_replication_failed"), why="a register beside a dead member")
    return answer.ok


async def _is_blocked(lockd: Lockd, node: str) -> None:
    answer = await lockd.call(wire.register(HASH, E), lockd.authority.server(name="x"), node=node)
    expect(answer, refused("tc_rm_replication_failed"), why="a register while a member is unreachable")


async def _blocked_while_listed(lockd: Lockd, node: str, endpoint: str, since: Moment) -> None:
    """Judges that a register fails while the dead member is listed, and succeeds once it is not."""

    async def look() -> bool:
        before = endpoint in await lockd.members(node)
        accepted = await _accepted(lockd, node)
        if accepted and before:
            await lockd.lacks(node, endpoint, why="a register was accepted, which the dead member can't have taken")
        return accepted

    await _is_blocked(lockd, node)
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
    await _is_blocked(lockd, node)
    await spy.open()
    await lockd.comes(lambda: _accepted(lockd, node), "rm_call_max", what="a register once the member answers")


@verifies("TC-RM-09", part=2, isolation="disruptive", waits="cluster_leader_max + member_expiry_settled")
async def test_a_killed_node_blocks_changes_until_it_expires(lockd: Lockd) -> None:
    nodes, _ = await lockd.cluster()
    killed = await lockd.kill(nodes[-1])
    await _blocked_while_listed(lockd, nodes[0], lockd.endpoint(nodes[-1]), killed)


@verifies("TC-RM-09", part=3, isolation="disruptive", waits="cluster_leader_max + rm_call_max")
async def test_a_restarted_node_ends_the_block(lockd: Lockd) -> None:
    nodes, _ = await lockd.cluster()
    await lockd.kill(nodes[-1])
    await _is_blocked(lockd, nodes[0])
    await lockd.restart(nodes[-1])
    await lockd.comes(lambda: _accepted(lockd, nodes[0]), "rm_call_max", what="a register once the node answers")


@verifies("TC-RM-10", isolation="quiet", nodes=1, waits="lease_settled_max + 2*silence_watch")
async def test_replicas_are_marked_and_applied_here_only(lockd: Lockd, T: SpecTime) -> None:
    node, (spy,) = await _leading_with(lockd, 1)
    server = lockd.authority.server(name="x")
    for request in (wire.register(HASH, E), wire.unregister(HASH, E)):
        since = T.now()
        await _changes(lockd, request, node)
        calls = _for_us(spy.got(request.path, since=since))
        with lockd.context.arranging("TC-RM-04"):
            demand(calls, f"a replica at {spy.name}", "none")
        marked = calls[0].marked(lockd.dialect.replica_header)
        demand(marked, f"a replica with the header {lockd.dialect.replica_header}", calls[0].describe())
        calls[0].says(request.body, "the replicated call")
    for make, there in ((wire.register, [E]), (wire.unregister, [])):
        since = T.now()
        expect(await lockd.call(make(HASH, E, lockd.dialect.replica), server, node=node), ok(), why="a replica")
        await _holds(lockd, node, there, "a replica is applied here")
        await T.sleep(T.silence_watch, "a replica that must not be sent on")
        calls = [call for path in (wire.REGISTER, wire.UNREGISTER) for call in spy.got(path, since=since)]
        demand_none(_for_us(calls), "no replica sent on")


@verifies("TC-RM-10", part=2, isolation="quiet", waits="cluster_leader_max")
async def test_a_replica_changes_one_node_only(lockd: Lockd) -> None:
    nodes, _ = await lockd.cluster()
    a, b = nodes[:2]
    server, mark = lockd.authority.server(name="x"), lockd.dialect.replica
    for node, request in ((a, wire.register(HASH, E, mark)), (b, wire.register(HASH, E, mark))):
        await _holds(lockd, b, [], "a replica to one node does not show at another")
        expect(await lockd.call(request, server, node=node), ok(), why=f"a replica at {node}")
    expect(await lockd.call(wire.unregister(HASH, E, mark), server, node=a), ok(), why=f"a replica at {a}")
    await _holds(lockd, a, [], "each node for itself")
    await _holds(lockd, b, [E], "each node for itself")
