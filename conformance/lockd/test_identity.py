"""Identity (seed: Server identity): the node-id in the certificate's SPIFFE URI, and nothing else."""

import asyncio
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path

from cryptography import x509

from holdfast.check.finding import Finding, Inconclusive, demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.check.x509 import CLIENT_AUTH, SERVER_AUTH, uris_of, usages_of, write_private
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.client import Lockd
from holdfast.conformance.lockd.endpoints import canonical
from holdfast.conformance.lockd.identities import Identity, read_identity, server_ids
from holdfast.conformance.lockd.judge import names
from holdfast.conformance.lockd.membership import nowhere
from holdfast.conformance.lockd.spy import Spy, spies
from holdfast.conformance.lockd.wire import ok, refused
from holdfast.conformance.shared.wire import moment

OTHER_HOST = "other.invalid"


@verifies("TC-IDENT-01")
async def test_a_server_certificate_names_the_node_and_has_both_usages(lockd: Lockd) -> None:
    for node in lockd.nodes:
        certificate = await lockd.certificate(node)
        uris, usages = uris_of(certificate), usages_of(certificate)
        lockd.context.transcript.received(f"{names(uris)}; usages {names(usage.dotted_string for usage in usages)}")
        ids = server_ids(uris)
        demand(len(ids) == 1, f"exactly one spiffe://lockd/server/<node-id> at {node}", names(uris))
        demand(ids[0], f"a node-id at {node}", names(uris))
        missing = [usage.dotted_string for usage in {SERVER_AUTH, CLIENT_AUTH} - usages]
        demand(not missing, f"serverAuth and clientAuth usage at {node}", f"no {names(missing)}")


async def _issue(lockd: Lockd, *words: str) -> None:
    tool = shlex.split(lockd.deployment.fill(str(lockd.context.target.credentials["bundle_tool"])))
    argv = [*tool, *words]
    lockd.context.transcript.note(" ".join(argv))
    ended = await asyncio.to_thread(subprocess.run, argv, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise Finding(["a bundle"], ended.stderr[-300:] or f"status {ended.returncode}", " ".join(words))


def _read(path: Path) -> Identity:
    return read_identity(path.name, path.read_text())


@verifies("TC-IDENT-02", waits="startup_exit_max")
async def test_bundles_get_fresh_ids_and_keep_them_when_issued_again(lockd: Lockd) -> None:
    place = lockd.folder()
    ca, one, two = place / "tool-ca.pem", place / "one.pem", place / "two.pem"
    await _issue(lockd, "new", "ca", "--out", str(ca))
    server = ("new", "server", "--ca-in", str(ca), "--hosts", "127.0.0.1")
    for path in (one, two):
        await _issue(lockd, *server, "--out", str(path))
    first, other = _read(one), _read(two)
    demand(first.node_id, "a node-id in a new server bundle", "none")
    demand(first.node_id != other.node_id, "two node-ids in two new server bundles", f"{first.node_id} in both")
    await _issue(lockd, *server, "--out", str(one), "--force")
    again = _read(one)
    expect(again.node_id, first.node_id, why="the node-id of a bundle that was issued again")
    serials = again.certificate.serial_number, first.certificate.serial_number
    demand(serials[0] != serials[1], "another certificate", f"the serial {serials[0]:x} again")
    demand(again.certificate.public_key() != first.certificate.public_key(), "another key", "the old one")


@verifies("TC-IDENT-02", waits="startup_exit_max")
async def test_client_bundles_carry_the_path_of_their_kind(lockd: Lockd) -> None:
    place = lockd.folder()
    ca = place / "tool-ca.pem"
    await _issue(lockd, "new", "ca", "--out", str(ca))
    for kind, prefix in (("tcclient", "spiffe://lockd/tc/"), ("client", "spiffe://lockd/sdk/")):
        path = place / f"{kind}.pem"
        await _issue(lockd, "new", kind, "--ca-in", str(ca), "--out", str(path), "--cn", "worker")
        uris = [uri for uri in uris_of(_read(path).certificate) if uri.startswith("spiffe:")]
        expect(names(uris), f"{prefix}worker", why=f"the SPIFFE URI of a {kind} bundle")


@verifies("TC-IDENT-03", isolation="quiet", nodes=1)
@verifies("TC-IDENT-07", isolation="quiet", nodes=1)
async def test_two_certificates_of_one_node_id_are_one_member(lockd: Lockd) -> None:
    first = lockd.authority.server(name="x1")
    rotated, other = lockd.authority.server(first.node_id, name="x2"), lockd.authority.server(name="y")
    await lockd.member(first, nowhere(1), lockd.lone)
    with lockd.context.arranging("TC-MEMBER-01"):
        await lockd.lists(lockd.lone, nowhere(1), why="control: the first announce")
    await lockd.member(rotated, nowhere(2), lockd.lone)
    await lockd.lists(lockd.lone, nowhere(2), why="the new endpoint of the same node-id")
    await lockd.lacks(lockd.lone, nowhere(1), why="the old endpoint of the same node-id")
    await lockd.member(other, nowhere(3), lockd.lone)
    await lockd.lists(lockd.lone, nowhere(2), nowhere(3), why="two node-ids are two members")


@verifies("TC-IDENT-04", isolation="quiet", nodes=1)
async def test_without_a_server_uri_there_is_no_membership(lockd: Lockd) -> None:
    both, node = (SERVER_AUTH, CLIENT_AUTH), lockd.lone
    await lockd.member(lockd.authority.server(name="bystander"), nowhere(1), node)
    before = names(await lockd.members(node))
    for uris in ((), ("spiffe://lockd/tc/x",), ("spiffe://lockd/sdk/x",)):
        stranger = lockd.authority.identity(uris[0] if uris else "no-uri", uris, both, hosts=("*",), common_name="x")
        for request in (wire.announce(nowhere(2)), wire.leave(), wire.leave(lockd.dialect.guard)):
            answer = await lockd.call(request, stranger, node=node)
            expect(answer, refused("tc_cluster_identity_missing"), why=f"{request.path} as {stranger.name}")
        expect(names(await lockd.members(node)), before, why="the list after refused calls")


@verifies("TC-IDENT-05", isolation="quiet", nodes=1)
async def test_a_payload_never_names_the_caller(lockd: Lockd) -> None:
    node = lockd.lone
    victim, x = lockd.node_id(node), lockd.authority.server(name="x")
    claims = {"identity": victim, "node_id": victim}
    request = wire.announce(nowhere(1))
    forged = replace(
        request, body={**request.body, **claims}, query=claims, headers={"X-Identity": victim, "X-Node-Id": victim}
    )
    answer = await lockd.call(forged, x, node=node)
    legal = answer.ok or 400 <= answer.status < 500
    demand(legal, "200, or a refusal with a 4xx", answer.describe(), "identity values in a request count for nothing")
    if not answer.ok:  # a node may refuse fields that it does not know
        await lockd.lists(node, lockd.endpoint(node), why="somebody else's request named it")
        await lockd.member(x, nowhere(1), node)
    await lockd.lists(node, lockd.endpoint(node), nowhere(1), why="both are members")
    expect(await lockd.leave_as(x, node), ok(), why="the lease belongs to the certificate")
    await lockd.lacks(node, nowhere(1), why="the certificate that announced it has left")


@verifies("TC-IDENT-06", isolation="quiet", nodes=1, waits="lease_settled_max + rm_listed_max")
async def test_host_names_of_peers_do_not_matter(lockd: Lockd, T: SpecTime) -> None:
    node, (spy,) = lockd.lone, await spies(lockd, 1, hosts=(OTHER_HOST,))
    await lockd.leads(node)
    since = T.now()
    await spy.join(node)
    await spy.receives(wire.ANNOUNCE, "next_tick_max", since=since)
    await _lease_call(lockd, spy, since)
    await spy.receives(wire.REGISTER, "rm_listed_max", since=since)


async def _lease_call(lockd: Lockd, spy: Spy, since: Moment) -> None:
    """Waits for a lease call, of whatever kind: how a leader goes on when its list grows is its own business."""

    async def look() -> bool:
        return any(spy.got(path, since=since) for path in (wire.RENEW, wire.ACQUIRE, wire.RELEASE))

    with spy.excused():
        await lockd.comes(look, "lease_settled_max", since=since, what=f"a lease call at {spy.name}")


@verifies("TC-IDENT-06", part=2, isolation="disruptive", waits="lease_settled_max + cluster_leader_max")
async def test_a_cluster_with_foreign_host_names_converges(lockd: Lockd) -> None:
    """One node starts alone and leads before the others join: nodes that start at one moment may all lead at first."""
    first, *rest = lockd.nodes
    for node in lockd.nodes:
        await lockd.kill(node)
    for node in (first, *rest):
        await _restart_with(lockd, node, lockd.authority.server(lockd.node_id(node), name=node, hosts=(OTHER_HOST,)))
        if (hosts := _hosts(await lockd.certificate(node))) != [OTHER_HOST]:
            raise Inconclusive(f"{node} presents a certificate for {names(hosts)}: it did not take its new bundle")
        if node == first:
            await lockd.leads(node)
    await lockd.introduce(*lockd.nodes)
    await lockd.agreed(*lockd.nodes, owner="TC-IDENT-06")


def _hosts(certificate: x509.Certificate) -> list[str]:
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return names.get_values_for_type(x509.DNSName)


async def _restart_with(lockd: Lockd, node: str, identity: Identity, **settings: str) -> None:
    text = lockd.authority.bundle(identity)
    path = write_private(lockd.folder() / f"{node}-{identity.certificate.serial_number:x}.pem", text)
    await lockd.restart(node, bundle=str(path), **settings)
    lockd.take_identity(node, identity)


@verifies("TC-IDENT-07", part=2, isolation="disruptive", nodes=1, waits="2*lease_settled_max")
async def test_a_moved_and_rotated_node_keeps_its_leader_id(lockd: Lockd) -> None:
    node = lockd.lone
    before, _ = await lockd.leads(node)
    moved = canonical(await lockd.detour(node))
    await _restart_with(lockd, node, lockd.authority.server(lockd.node_id(node), name=node), endpoint=moved, join=moved)

    async def leads() -> wire.Leader | None:
        found = await lockd.valid_leader(node)
        return found if found and found.endpoint == moved else None

    after, _ = await lockd.comes(leads, "lease_settled_max", what="the moved node to lead")
    expect(after.id, before.id, why="leader_id after a move with a new key")


@verifies("TC-IDENT-07", part=3, isolation="disruptive", waits="cluster_leader_max + tick_settled_max")
async def test_a_moved_node_leaves_nothing_at_its_old_endpoint(lockd: Lockd, T: SpecTime) -> None:
    nodes, _ = await lockd.cluster()
    a, b = nodes[:2]
    moved = canonical(await lockd.detour(a))
    await lockd.kill(a)
    rotated = lockd.authority.server(lockd.node_id(a), name=a)
    since = T.now()
    await _restart_with(lockd, a, rotated, endpoint=moved, join=f"{moved},{lockd.url(b)}")

    async def moved_there() -> bool:
        seen = await lockd.members(b)
        return moved in seen and lockd.endpoint(a) not in seen

    await lockd.comes(moved_there, "tick_settled_max", since=since, what="the new endpoint alone")


@verifies("TC-IDENT-08", isolation="quiet", nodes=1, waits="membership_ttl + clock_slack")
async def test_a_new_node_id_is_a_new_member(lockd: Lockd, T: SpecTime) -> None:
    node, authority = lockd.lone, lockd.authority
    old, new = (
        authority.identity(
            name, (f"spiffe://lockd/server/{name}",), (SERVER_AUTH, CLIENT_AUTH), hosts=("*",), common_name="same"
        )
        for name in ("first-id", "second-id")
    )
    announced = await lockd.member(old, nowhere(1), node)
    expiry = lockd.moment_of(announced.expires_at)
    await lockd.member(new, nowhere(2), node)
    await lockd.lists(node, nowhere(1), nowhere(2), why="both node-ids are members")

    await T.sleep_until(expiry, -T.expiry_look, "almost the old lease's end")
    await lockd.member(new, nowhere(2), node)
    look = await lockd.call(wire.members(), node=node)
    if moment(look).hi > expiry.lo:
        raise Inconclusive("the suite looked too late to see the old lease before its end")
    demand(nowhere(1) in look.endpoints, f"{nowhere(1)} until its lease ends", names(look.endpoints))
    await T.sleep_until(expiry, T.clock_slack, "the old lease's end")
    await lockd.lacks(node, nowhere(1), why="its lease has ended")
    await lockd.lists(node, nowhere(2), why="the new member goes on")
