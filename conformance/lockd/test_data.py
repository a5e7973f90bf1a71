"""Data model (seed: membership lease, RM registry, leader lease): what is kept where, and under which name."""

import json
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

from holdfast.check.finding import Inconclusive, NotObservable, demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.client import Lockd
from holdfast.conformance.lockd.judge import demand_none, names, no_other_leader, same_leader, shown
from holdfast.conformance.lockd.membership import nowhere
from holdfast.conformance.lockd.spy import spies
from holdfast.conformance.lockd.spy_cluster import leaderless, raised, spy_members, stepped_down
from holdfast.conformance.lockd.store import LEASES, NAMESPACE, REGISTRY, Objects, objects
from holdfast.conformance.lockd.wire import Leader
from holdfast.conformance.shared.wire import Request

# What a spy reports so that a node leads in a later term.
RAISED = 1000


@verifies("TC-DATA-01", isolation="quiet", nodes=1)
async def test_the_registry_groups_endpoints_by_backend(lockd: Lockd) -> None:
    node, server = lockd.lone, lockd.authority.server(name="x")
    for backend, endpoint in (("h1", nowhere(1)), ("h1", nowhere(2)), ("h2", nowhere(3))):
        await lockd.arrange("TC-RM-03", wire.register(backend, endpoint), server, node=node)
    expect(names(await lockd.entries("h1", node)), names([nowhere(1), nowhere(2)]), why="two endpoints of one backend")
    expect(names(await lockd.entries("h2", node)), nowhere(3), why="the endpoint of the other backend")


@verifies("TC-DATA-01", isolation="quiet", nodes=1)
async def test_announces_at_the_same_moment_are_all_kept(lockd: Lockd, T: SpecTime) -> None:
    crowd = [lockd.authority.server(name=f"x{number}") for number in range(T.count("burst"))]
    ends = [nowhere(number) for number in range(len(crowd))]
    for who in crowd:
        await lockd.warm(1, lockd.lone, who)
    await lockd.parallel([partial(lockd.member, who, end, lockd.lone) for who, end in zip(crowd, ends, strict=True)])
    await lockd.lists(lockd.lone, *ends, why=f"{len(ends)} announces that were accepted at the same moment")


@verifies("TC-DATA-01", part=2, isolation="disruptive", nodes=1)
async def test_stored_objects_have_their_names_and_fields(lockd: Lockd) -> None:
    # A store in memory can't be looked into, so the node gets a durable one where there is one.
    node = await _on_a_durable_store(lockd) if lockd.dialect.durable_store else lockd.lone
    x = lockd.authority.server(name="x")
    for backend, endpoint in (("h1", nowhere(1)), ("h2", nowhere(2))):
        await lockd.arrange("TC-RM-03", wire.register(backend, endpoint), x, node=node)
    before = await objects(lockd, node)
    answer = await lockd.member(x, f"{nowhere(4)}/", node)
    after = await objects(lockd, node)
    key = (NAMESPACE, LEASES + x.node_id)
    fresh = sorted("/".join(name) for name in after.keys() - before.keys() if name[1].startswith(LEASES))
    expect(names(fresh), "/".join(key), why="exactly one new lease object")
    wanted: dict[str, str | int] = {"identity": x.node_id, "endpoint": nowhere(4)}
    wanted |= {"updated_at_unix": answer.updated_at, "expires_at_unix": answer.expires_at}
    _holds(after[key], wanted, "the stored lease")
    await lockd.arrange("TC-LEAVE-01", wire.leave(lockd.dialect.guard), x, node=node)
    left = await objects(lockd, node)
    demand(key not in left, f"no object {'/'.join(key)} after its leave", _keys(left))
    demand((NAMESPACE, REGISTRY) in after, f"an object {NAMESPACE}/{REGISTRY}", _keys(after))
    stored = after[NAMESPACE, REGISTRY].get("backends") or []
    for number, backend in enumerate(("h1", "h2"), 1):
        entry: dict[str, Any] = next((each for each in stored if each.get("backend_hash") == backend), {})
        _holds(entry, {"endpoints": [nowhere(number)]}, f"{backend} in the registry, which groups by backend hash")


def _holds(entry: Mapping[str, Any], wanted: Mapping[str, Any], what: str) -> None:
    """Raises Finding unless the stored object has these values, compared as the wire compares them."""
    same = all(wire.same(name, entry.get(name), value) for name, value in wanted.items())
    demand(same, json.dumps(wanted), json.dumps({name: entry.get(name) for name in wanted}), what)


def _keys(found: Objects) -> str:
    return names(sorted("/".join(key) for key in found))


@verifies("TC-DATA-02", isolation="quiet", nodes=1, waits="3*lease_settled_max")
async def test_the_leader_id_is_the_node_id_of_the_certificate(lockd: Lockd, T: SpecTime) -> None:
    node = lockd.lone
    leader, _ = await lockd.leads(node)
    (spy,) = await spy_members(lockd, node, 1)
    expect(leader.id, lockd.node_id(node), why="leader_id and the node-id of the leader's certificate")
    renewal = await spy.awaits("TC-STEP-01", wire.RENEW, "lease_settled_max", what="a renewal")
    renewal.says({"leader_id": lockd.node_id(node)}, "leader_id of a renewal")
    since = T.now()
    spy.refuse_votes()
    await stepped_down(lockd, node, [spy], since)
    vote = await spy.awaits("TC-ELECT-02", wire.ACQUIRE, "lease_settled_max", since=since, what="a vote request")
    vote.says({"candidate_id": lockd.node_id(node)}, "candidate_id of a vote request")


@verifies("TC-DATA-03", isolation="disruptive", nodes=1, waits="4*lease_settled_max + 2*tick_settled_max")
async def test_a_restarted_lone_node_begins_its_terms_anew(lockd: Lockd) -> None:
    node = lockd.lone
    if lockd.dialect.durable_store:
        await lockd.restart(node, join=lockd.url(node), store=lockd.dialect.durable_store)
        await lockd.leads(node)
    spy, leader = await raised(lockd, node)
    await spy.leave(node)
    await lockd.restart(node, join=lockd.url(node))
    again, _ = await lockd.leads(node)
    why = f"it led in term {leader.term} before it was started again, alone"
    demand(again.term < RAISED, f"a term that begins anew, below {RAISED}", again.describe(), why)


@verifies("TC-DATA-03", isolation="disruptive", nodes=1, waits="tick_settled_max + two_leader_ttl")
async def test_a_restarted_node_takes_leader_and_term_from_its_peers(lockd: Lockd, T: SpecTime) -> None:
    node, (spy,) = lockd.lone, await spies(lockd, 1)
    ttl = T.leader_ttl * 1000
    spy.report(lambda: Leader(spy.node_id, spy.endpoint, 2000, int(time.time() * 1000 + ttl)))
    started = await lockd.restart(node, join=f"{lockd.url(node)},{spy.endpoint}")
    await spy.join(node)

    async def follows() -> bool:
        leader = await lockd.valid_leader(node)
        mine = leader is None or leader.endpoint == spy.endpoint
        demand(mine, f"no leader before {spy.endpoint}, which the peer reports", shown(leader))
        return leader is not None and (leader.id, leader.term) == (spy.node_id, 2000)

    await lockd.comes(follows, "tick_settled_max", what="the node to show the leader of its peers")
    reported = Leader(spy.node_id, spy.endpoint, 2000)

    async def stays() -> None:
        no_other_leader(await lockd.valid_leader(node), reported, "its peer goes on to report it")

    await lockd.throughout(stays, T.leader_ttl, "the reported leader")
    await lockd.comes(follows, "tick_settled_max", what="the node to show the leader of its peers still")
    demand_none(spy.got(wire.ACQUIRE, since=started), "no vote request of the restarted node")


@verifies("TC-DATA-03", part=2, isolation="disruptive", waits="cluster_leader_max + 2*tick_settled_max")
async def test_a_restarted_follower_rebuilds_leader_and_term(lockd: Lockd, T: SpecTime) -> None:
    nodes, leader = await lockd.cluster()
    follower = lockd.others(lockd.at(leader.endpoint))[0]
    await lockd.kill(follower)
    await lockd.restart(follower)

    async def follows() -> bool:
        seen = await lockd.valid_leader(follower)
        demand(seen is None or seen.id == leader.id, f"no leader before {leader.describe()}", shown(seen))
        return seen is not None and seen.term == leader.term

    await lockd.comes(follows, "tick_settled_max", what="the follower to show leader and term again")
    await T.sleep(T.leader_ttl, "an election that must not happen")
    for node in nodes:
        seen = await lockd.valid_leader(node)
        same_leader(seen, leader, f"{node}, after the follower came back")


@verifies("TC-DATA-04", isolation="quiet", nodes=1, waits="lease_settled_max")
async def test_refusals_are_json_with_code_and_status(lockd: Lockd) -> None:
    node = lockd.lone
    await lockd.leads(node)
    server, client = lockd.authority.server(name="x"), lockd.client
    provoked = [
        ("missing_self_endpoint", Request("POST", wire.ANNOUNCE, {}), server),
        ("tc_forbidden", wire.announce(nowhere(1)), client),
        ("missing_backend_hash", wire.register("", nowhere(1)), server),
        ("missing_endpoint", wire.register("h1", ""), server),
        ("tc_term_required", wire.apply(lockd.txn(), "commit"), client),
        ("txn_not_found", wire.replay(lockd.txn()), client),
    ]
    for code, request, who in provoked:
        answer = await lockd.call(request, who, node=node)
        kind = answer.headers.get("Content-Type", "")
        lockd.context.transcript.received(f"Content-Type: {kind}")
        with lockd.context.collect():
            expect(answer, wire.refused_with_status(code), why=request.path)
            expect(kind.partition(";")[0].strip().lower(), "application/json", why=f"Content-Type of {code}")


@verifies("TC-DATA-04", isolation="quiet", nodes=1, waits="3*lease_settled_max")
async def test_a_refusal_for_want_of_a_leader_has_its_status(lockd: Lockd) -> None:
    node, _ = await leaderless(lockd)
    answer = await lockd.call(wire.decide(lockd.txn(), "commit"), node=node)
    expect(answer, wire.refused_with_status("tc_unavailable"), why="a decision without a leader")


@verifies("TC-DATA-04", isolation="quiet", nodes=1, waits="lease_settled_max")
async def test_times_are_milliseconds(lockd: Lockd, T: SpecTime) -> None:
    node = lockd.lone

    async def named() -> wire.Answer | None:  # whether its lease is valid can't be told before its times are
        seen = await lockd.leader(node)
        return seen if seen.leader.endpoint else None

    shown, _ = await lockd.awaits("TC-ELECT-03", named, "lease_settled_max", what=f"a leader at {node}")
    _ahead(shown.leader.expires_at, shown.wall, T.leader_ttl, T, "expires_at of the leader")
    answer = await lockd.member(lockd.authority.server(name="x"), nowhere(1), node)
    _ahead(answer.expires_at, answer.wall, T.membership_ttl, T, "expires_at_unix of an announce")
    off = abs(answer.updated_at / 1000 - answer.wall)
    near = off < T.clock_slack + answer.received - answer.sent
    demand(near, "updated_at_unix: now, in milliseconds", f"{answer.updated_at}, {off:.1f} s from now")


def _ahead(stamp: int, wall: float, ttl: float, T: SpecTime, what: str) -> None:
    left = stamp / 1000 - wall
    seen = f"{stamp}, which is {left:.1f} s ahead"
    demand(0 < left <= ttl + T.clock_slack, f"{what}: milliseconds that lie at most {ttl:g} s ahead", seen)


@verifies("TC-DATA-05", isolation="disruptive", nodes=1, waits="2*membership_ttl + clock_slack")
async def test_leases_and_registry_outlive_the_process(lockd: Lockd, T: SpecTime) -> None:
    node = await _on_a_durable_store(lockd)
    early, late, server = (lockd.authority.server(name=name) for name in ("s2", "s1", "rm"))
    await lockd.arrange("TC-RM-03", wire.register("h1", nowhere(3)), server, node=node)
    first = await lockd.member(early, nowhere(2), node)
    await T.sleep(T.membership_ttl / 2, "a lease that will run out while the node is down")
    second = await lockd.member(late, nowhere(1), node)
    await lockd.kill(node)
    await T.sleep_until(lockd.moment_of(first.expires_at), T.clock_slack, "the early lease to run out")
    await lockd.restart(node, owner="TC-DATA-05")  # a node that can't start on what it has stored has not kept it

    seen, registry = await lockd.call(wire.members(), node=node), await lockd.registered(node)
    if seen.wall * 1000 > second.expires_at:
        raise Inconclusive("the node took longer to start than the late lease lasted")
    demand(nowhere(1) in seen.endpoints, f"{nowhere(1)}, whose lease is live, in the list", names(seen.endpoints))
    demand(nowhere(2) not in seen.endpoints, f"no {nowhere(2)}, whose lease has run out", names(seen.endpoints))
    kept = registry.get("h1", wire.Backend((), 0)).endpoints
    demand(nowhere(3) in kept, f"{nowhere(3)} registered for h1 as before the restart", names(kept))
    await T.sleep_until(lockd.moment_of(second.expires_at), T.clock_slack, "the expiry from before the restart")
    await lockd.lacks(node, nowhere(1), why="its expiry from before the restart has passed")


async def _on_a_durable_store(lockd: Lockd) -> str:
    if not lockd.dialect.durable_store:
        raise NotObservable("[dialect] durable_store: a value of the setting `store` that outlives the process")
    node = lockd.lone
    await lockd.restart(node, join=lockd.url(node), store=lockd.dialect.durable_store)
    return node


@verifies("TC-DATA-05", part=2, isolation="disruptive", nodes=1, waits="self_listed_max")
async def test_stored_objects_are_the_same_after_a_restart(lockd: Lockd) -> None:
    node, x = await _on_a_durable_store(lockd), lockd.authority.server(name="s1")
    await lockd.arrange("TC-RM-03", wire.register("h1", nowhere(3)), x, node=node)
    answer = await lockd.member(x, nowhere(1), node)
    key = (NAMESPACE, LEASES + x.node_id)
    wanted: dict[str, str | int] = {"identity": x.node_id, "endpoint": nowhere(1)}
    wanted |= {"updated_at_unix": answer.updated_at, "expires_at_unix": answer.expires_at}
    for when in ("before", "after"):
        found = await objects(lockd, node)
        demand(key in found, f"an object {'/'.join(key)} {when} the restart", _keys(found))
        _holds(found[key], wanted, f"the lease object {when} the restart")
        demand((NAMESPACE, REGISTRY) in found, f"an object {NAMESPACE}/{REGISTRY} {when} the restart", _keys(found))
        if when == "before":
            await lockd.restart(node, owner="TC-DATA-05")


@verifies("TC-DATA-06", isolation="disruptive", nodes=2, waits="2*rm_listed_max")
async def test_nodes_of_one_island_share_leases_and_registry(lockd: Lockd, T: SpecTime) -> None:
    if not lockd.dialect.shared_store:
        raise NotObservable("[dialect] shared_store: a value of the setting `store` that several nodes share")
    a, b = lockd.nodes[:2]
    for node in (a, b):  # both before anything else: a node that still has its own store would register from there
        await lockd.kill(node)
    for node in (a, b):
        await lockd.restart(node, store=lockd.dialect.shared_store)
    x = lockd.authority.server(name="x")

    async def one_backend() -> bool:
        both = [await lockd.registered(node) for node in (a, b)]
        wanted = {lockd.endpoint(a), lockd.endpoint(b)}
        return all(len(each) == 1 and wanted <= set(next(iter(each.values())).endpoints) for each in both)

    await lockd.comes(one_backend, "rm_listed_max", what="one backend hash with both endpoints")
    for node in (a, b):
        await lockd.warm(T.count("burst"), node, x)
    await lockd.parallel(
        [
            partial(lockd.call, wire.register("island", nowhere(number), lockd.dialect.replica), x, node=node)
            for number in range(T.count("burst"))
            for node in (a, b)
        ]
    )
    wanted = sorted(nowhere(number) for number in range(T.count("burst")))
    for node in (a, b):
        seen = names(await lockd.entries("island", node))
        expect(seen, names(wanted), why=f"two registers at the same moment, listed at {node}")
    await lockd.member(x, nowhere(1), a)
    await lockd.lists(b, nowhere(1), why="it was announced at the other node of the island")
    await lockd.arrange("TC-LEAVE-01", wire.leave(lockd.dialect.guard), x, node=b)
    await lockd.lacks(a, nowhere(1), why="it has left at the other node of the island")


@verifies("TC-DATA-06", isolation="disruptive", nodes=2, waits="2*rm_listed_max")
async def test_nodes_of_two_islands_stand_under_two_hashes(lockd: Lockd) -> None:
    a, b = lockd.nodes[:2]
    if not lockd.dialect.durable_store:
        raise NotObservable("[dialect] durable_store: a value of the setting `store` that outlives the process")
    await lockd.restart(a, store=lockd.dialect.durable_store)
    probe = wire.register("probe", nowhere(1), lockd.dialect.replica)
    await lockd.arrange("TC-RM-10", probe, lockd.authority.server(name="x"), node=a)
    if await lockd.entries("probe", b):
        raise Inconclusive(f"{a} and {b} run on one store")
    hashes = [await lockd.backend_of(node) for node in (a, b)]
    demand(
        len(set(hashes)) == len(hashes), "a backend hash for each store", names(hashes), "two stores that share nothing"
    )
