"""Auth rules (seed: TC client auth, TC server auth, tc-disable-auth, mTLS requirement)."""

from dataclasses import replace

import pytest

from holdfast.check.finding import Finding, demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.check.x509 import CLIENT_AUTH, SERVER_AUTH, write_private
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.client import Lockd
from holdfast.conformance.lockd.endpoints import canonical
from holdfast.conformance.lockd.identities import Authority, Identity
from holdfast.conformance.lockd.judge import demand_none, names
from holdfast.conformance.lockd.membership import nowhere
from holdfast.conformance.lockd.spy import spies
from holdfast.conformance.lockd.wire import no_handshake, ok, refused
from holdfast.conformance.shared.wire import Request, not_status


def _client_requests() -> list[Request]:
    """Returns a request for each of the six routes of client auth, with a body that changes nothing if accepted."""
    methods = {wire.LEADER: "GET", wire.MEMBERS: "GET", wire.BACKENDS: "GET"}
    return [Request(methods.get(path, "POST"), path, None if path in methods else {}) for path in wire.CLIENT_ROUTES]


@verifies("TC-AUTH-01")
async def test_client_routes_are_closed_to_callers_without_a_certificate(lockd: Lockd) -> None:
    for request in _client_requests():
        with lockd.context.collect():
            answer = await lockd.call(request, anonymous=True)
            expect(answer, no_handshake(), refused("tc_client_required"), why=f"{request.path} without a certificate")
            expect(await lockd.call(request), not_status(403), why=f"control: {request.path} with a coordinator client")


async def _trusting_another(lockd: Lockd, node: str, **settings: str) -> Identity:
    """Restarts the node so that coordinator calls need another CA than TLS; returns a client of that other CA."""
    other = Authority.new()
    trust = lockd.folder() / "trust"
    trust.mkdir(exist_ok=True)
    write_private(trust / "other.pem", other.pem)
    client = other.coordinator_client("other-client")
    path = write_private(lockd.folder() / "other-client.pem", other.pem + client.chain_pem + client.key_pem)
    await lockd.restart(
        node,
        join=lockd.url(node),
        tc_trust_dir=str(trust),
        tc_client_bundle=str(path),
        **{"tc_allow_default_ca": "false", **settings},
    )
    return replace(client, ca_pem=lockd.authority.pem)


@verifies("TC-AUTH-01", part=2, isolation="disruptive", nodes=1, waits="self_listed_max")
async def test_client_routes_are_closed_to_certificates_outside_coordinator_trust(lockd: Lockd) -> None:
    node = lockd.lone
    trusted = await _trusting_another(lockd, node)
    stranger = lockd.authority.coordinator_client("stranger")
    for request in _client_requests():
        with lockd.context.collect():
            expect(await lockd.call(request, stranger, node=node), refused("tc_forbidden"), why=request.path)
            answer = await lockd.call(request, trusted, node=node)
            expect(answer, not_status(403), why=f"control: {request.path} under the trusted CA")


async def _lists(lockd: Lockd, node: str) -> str:
    """Returns members and registered endpoints as a finding shows them."""
    return f"members {names(await lockd.members(node))}; hash-1: {names(await lockd.entries('hash-1', node))}"


@verifies("TC-AUTH-02", isolation="quiet", nodes=1)
async def test_membership_and_registry_changes_need_a_server_certificate(lockd: Lockd) -> None:
    node, server = lockd.lone, lockd.authority.server(name="x")
    client = lockd.authority.coordinator_client("client-only")
    steps = (
        wire.register("hash-1", nowhere(1)),
        wire.unregister("hash-1", nowhere(1)),
        wire.announce(nowhere(1)),
        wire.leave(lockd.dialect.guard),
    )
    for request in steps:
        before = await _lists(lockd, node)
        expect(await lockd.call(request, client, node=node), refused("tc_forbidden"), why=request.path)
        answer = await lockd.call(request, node=node, anonymous=True)
        expect(answer, no_handshake(), refused("tc_server_required"), why=f"{request.path} without a certificate")
        expect(await _lists(lockd, node), before, why=f"lists after a refused {request.path}")
        expect(await lockd.call(request, server, node=node), ok(), why=f"control: {request.path} as a server")


@verifies("TC-AUTH-03", isolation="quiet", nodes=1)
async def test_one_server_certificate_opens_every_route(lockd: Lockd, T: SpecTime) -> None:
    node, server = lockd.lone, lockd.authority.server(name="x")
    requests = [
        wire.leader(),
        wire.members(),
        wire.backends(),
        wire.acquire(server.node_id, nowhere(1), 1, int(T.probe_lease_ttl * 1000)),
        wire.register("hash-1", nowhere(1)),
        wire.unregister("hash-1", nowhere(1)),
        wire.announce(nowhere(1)),
        wire.leave(lockd.dialect.guard),
    ]
    for request in requests:
        with lockd.context.collect():
            expect(await lockd.call(request, server, node=node), not_status(403), why=request.path)


@verifies("TC-AUTH-04", isolation="disruptive", nodes=1, waits="next_tick_max")
async def test_disabled_coordinator_auth_still_asks_who_a_member_is(lockd: Lockd) -> None:
    node, (spy,) = lockd.lone, await spies(lockd, 1)
    stranger, server = lockd.authority.coordinator_client("stranger"), lockd.authority.server(name="x")
    await _trusting_another(lockd, node)
    for request in (wire.leader(), wire.members()):
        expect(await lockd.call(request, stranger, node=node), refused("tc_forbidden"), why="control: auth is on")

    await _trusting_another(lockd, node, tc_disable_auth="true")
    for request in (wire.leader(), wire.members()):
        expect(await lockd.call(request, stranger, node=node), ok(), why=f"{request.path} with auth disabled")
    for request in (wire.announce(nowhere(1)), wire.leave(lockd.dialect.guard)):
        answer = await lockd.call(request, stranger, node=node)
        expect(answer, refused("tc_cluster_identity_missing"), why=f"{request.path} as a client")
        expect(await lockd.call(request, server, node=node), ok(), why=f"control: {request.path} as a server")
    await spy.join(node)
    call = await spy.receives(wire.ANNOUNCE, "next_tick_max")
    call.comes_from(lockd.node_id(node), "the identity that the node itself announces with")


def _plain(lockd: Lockd, node: str) -> str:
    return lockd.url(node).replace("https://", "http://", 1)


async def _refuses_to_start(lockd: Lockd, node: str, peer: str, mistake: str) -> None:
    me, settings = lockd.url(node), {"disable_mtls": "true"}
    if mistake == "no node-id":
        leaf = lockd.authority.identity("nameless", (), (SERVER_AUTH, CLIENT_AUTH), hosts=("*",))
        path = write_private(lockd.folder() / "nameless.pem", lockd.authority.bundle(leaf))
        settings = {"bundle": str(path)}
    else:
        me = _plain(lockd, node)
        settings |= {"endpoint": me, **({"tc_disable_auth": "true"} if mistake == "no mTLS, no auth" else {})}
    ending, seen = await lockd.refuses_to_start(node, join=f"{me},{peer}", **settings)
    if not ending or "status 0 " in ending:
        raise Finding(["an end with an error"], ending or "the node serves", f"{mistake}, --join {me},{peer}")
    lockd.T.at_most("startup_exit_max", since=Moment(seen.lo, seen.lo), seen=lockd.T.now(), what="the refusal")
    plain = await lockd.call(Request("GET", lockd.dialect.health), url=_plain(lockd, node))
    demand(not plain.answered, "no server at its port in clear text", plain.describe())


MISTAKES = pytest.mark.parametrize("mistake", ["no mTLS", "no node-id", "no mTLS, no auth"])


@MISTAKES
@verifies("TC-AUTH-05", isolation="disruptive", nodes=1, waits="startup_exit_max")
async def test_a_join_list_with_others_needs_mtls_and_a_node_id(lockd: Lockd, mistake: str) -> None:
    node, (spy,) = lockd.lone, await spies(lockd, 1)
    await lockd.restart(node, join=f"{lockd.url(node)},{spy.endpoint}")
    await lockd.members(node)  # control: with mTLS and a node-id it starts
    since = lockd.T.now()
    await _refuses_to_start(lockd, node, spy.endpoint, mistake)
    late = [call for call in spy.got(wire.ANNOUNCE, since=since) if call.node_id != lockd.node_id(node)]
    demand_none(late, "no announce without an identity")


@MISTAKES
@verifies("TC-AUTH-05", part=2, isolation="disruptive", nodes=2, waits="startup_exit_max")
async def test_a_node_without_identity_never_reaches_a_live_node(lockd: Lockd, mistake: str) -> None:
    a, b = lockd.nodes[:2]
    await lockd.kill(b)
    await lockd.restart(a, join=lockd.url(a))
    before = await lockd.members(a)
    await _refuses_to_start(lockd, b, lockd.url(a), mistake)
    expect(names(await lockd.members(a)), names(before), why="the live node's list")


@verifies("TC-AUTH-06", isolation="disruptive", nodes=1, waits="3*first_leader_max + 3*self_listed_max")
async def test_without_mtls_a_lone_node_leads_under_a_stable_name(lockd: Lockd) -> None:
    node = lockd.lone
    first = _plain(lockd, node)
    second = lockd.free_port("http")
    seen = [await _plain_leader(lockd, node, url) for url in (first, first, second)]
    demand(seen[0], "a leader_id without mTLS", "an empty one")
    expect(seen[1], seen[0], why="leader_id after a restart on the same port")
    demand(seen[2] != seen[0], "another leader_id on another port: a hash of the endpoint", seen[2])
    before = (await lockd.call(wire.members(), url=second)).endpoints
    for request in (wire.announce(nowhere(1)), wire.leave(), wire.leave(lockd.dialect.guard)):
        expect(await lockd.call(request, url=second), refused("tc_cluster_identity_missing"), why=request.path)
    expect((await lockd.call(wire.members(), url=second)).endpoints, before, why="the list after refused calls")


async def _plain_leader(lockd: Lockd, node: str, url: str) -> str:
    listen = url.partition("://")[2]
    await lockd.start_beside(node, url, disable_mtls="true", endpoint=url, join=url, listen=listen)

    async def leads() -> wire.Leader | None:
        answer = await lockd.call(wire.leader(), url=url)
        return answer.leader if answer.has_leader and answer.leader.endpoint == canonical(url) else None

    leader, _ = await lockd.comes(leads, "first_leader_max", what="the plain node to lead")
    return leader.id
