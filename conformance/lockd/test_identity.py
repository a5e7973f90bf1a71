"""Identity (seed: Server identity): the node-id in the certificate's SPIFFE URI, and nothing else."""

import asyncio
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path

from cryptography import x509

from holdfast.check.finding import Finding, Inconclusive, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.check.x509 import CLIENT_AUTH, SERVER_AUTH, pem_blocks, uris_of, usages_of, write_private
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.client import Lockd
from holdfast.conformance.lockd.identities import Identity, read_identity, server_ids
from holdfast.conformance.lockd.membership import nowhere
from holdfast.conformance.lockd.spy import spies
from holdfast.conformance.lockd.wire import ok, refused
from holdfast.conformance.shared.wire import moment

OTHER_HOST = "other.invalid"


@verifies("TC-IDENT-01")
async def test_a_server_certificate_names_the_node_and_has_both_usages(lockd: Lockd) -> None:
    for node in lockd.nodes:
        certificate = await lockd.certificate(node)
        ids = server_ids(uris_of(certificate))
        assert len(ids) == 1, f"{node} presents {uris_of(certificate)}, not exactly one spiffe://lockd/server/<node-id>"
        assert ids[0], f"{node} has an empty node-id"
        missing = {SERVER_AUTH, CLIENT_AUTH} - usages_of(certificate)
        assert not missing, f"{node} lacks the usages {[usage.dotted_string for usage in missing]}"


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
    assert first.node_id, "a new server bundle has no node-id"
    assert first.node_id != other.node_id, "two new server bundles share their node-id"
    await _issue(lockd, *server, "--out", str(one), "--force")
    again = _read(one)
    expect(again.node_id, first.node_id, why="the node-id of a bundle that was issued again")
    assert again.certificate.serial_number != first.certificate.serial_number, "nothing was issued again"
    assert again.certificate.public_key() != first.certificate.public_key(), "the key is the old one"


@verifies("TC-IDENT-02", waits="startup_exit_max")
async def test_client_bundles_carry_the_path_of_their_kind(lockd: Lockd) -> None:
    place = lockd.folder()
    ca = place / "tool-ca.pem"
    await _issue(lockd, "new", "ca", "--out", str(ca))
    for kind, prefix in (("tcclient", "spiffe://lockd/tc/"), ("client", "spiffe://lockd/sdk/")):
        path = place / f"{kind}.pem"
        await _issue(lockd, "new", kind, "--ca-in", str(ca), "--out", str(path), "--cn", "worker")
        uris = [uri for uri in uris_of(_read(path).certificate) if uri.startswith("spiffe:")]
        expect(uris, [f"{prefix}worker"], why=f"the SPIFFE URI of a {kind} bundle")


@verifies("TC-IDENT-03", isolation="quiet", nodes=1)
@verifies("TC-IDENT-07", isolation="quiet", nodes=1)
async def test_two_certificates_of_one_node_id_are_one_member(lockd: Lockd) -> None:
    first = lockd.authority.server(name="x1")
    rotated, other = lockd.authority.server(first.node_id, name="x2"), lockd.authority.server(name="y")
    await lockd.member(first, nowhere(1), lockd.lone)
    assert nowhere(1) in await lockd.members(lockd.lone), "control: the first announce is listed"
    await lockd.member(rotated, nowhere(2), lockd.lone)
    seen = await lockd.members(lockd.lone)
    assert nowhere(2) in seen, f"the new endpoint is not listed: {seen}"
    assert nowhere(1) not in seen, f"the old endpoint of the same node-id is still listed: {seen}"
    await lockd.member(other, nowhere(3), lockd.lone)
    assert {nowhere(2), nowhere(3)} <= set(await lockd.members(lockd.lone)), "two node-ids are two members"


@verifies("TC-IDENT-04", isolation="quiet", nodes=1)
async def test_without_a_server_uri_there_is_no_membership(lockd: Lockd) -> None:
    both, node = (SERVER_AUTH, CLIENT_AUTH), lockd.lone
    await lockd.member(lockd.authority.server(name="bystander"), nowhere(1), node)
    before = await lockd.members(node)
    for uris in ((), ("spiffe://lockd/tc/x",), ("spiffe://lockd/sdk/x",)):
        stranger = lockd.authority.identity(uris[0] if uris else "no-uri", uris, both, hosts=("*",), common_name="x")
        for request in (wire.announce(nowhere(2)), wire.leave(), wire.leave(lockd.dialect.guard)):
            expect(await lockd.call(request, stranger, node=node), refused("tc_cluster_identity_missing"))
        expect(await lockd.members(node), before, why="the list after refused calls")


@verifies("TC-IDENT-05", isolation="quiet", nodes=1)
async def test_a_payload_never_names_the_caller(lockd: Lockd) -> None:
    node = lockd.lone
    victim, x = lockd.node_id(node), lockd.authority.server(name="x")
    claims = {"identity": victim, "node_id": victim}
    request = wire.announce(nowhere(1))
    forged = replace(
        request, body={**request.body, **claims}, query=claims, headers={"X-Identity": victim, "X-Node-Id": victim}
    )
    expect(await lockd.call(forged, x, node=node), ok(), why="identity values in a request are ignored")
    seen = await lockd.members(node)
    assert {lockd.url(node), nowhere(1)} <= set(seen), f"both members belong in the list: {seen}"
    expect(await lockd.leave_as(x, node), ok(), why="the lease belongs to the certificate")
    assert nowhere(1) not in await lockd.members(node), "the announce was stored under another identity"


@verifies("TC-IDENT-06", isolation="quiet", nodes=1, waits="lease_settled_max + rm_listed_max")
async def test_host_names_of_peers_do_not_matter(lockd: Lockd, T: SpecTime) -> None:
    node, (spy,) = lockd.lone, await spies(lockd, 1, hosts=(OTHER_HOST,))
    await lockd.leads(node)
    since = T.now()
    await spy.join(node)
    await spy.receives(wire.ANNOUNCE, "next_tick_max", since=since)
    await spy.receives(wire.RENEW, "lease_settled_max", since=since, what="a lease call")
    await spy.receives(wire.REGISTER, "rm_listed_max", since=since)


@verifies("TC-IDENT-06", part=2, isolation="disruptive", waits="cluster_leader_max")
async def test_a_cluster_with_foreign_host_names_converges(lockd: Lockd) -> None:
    for node in lockd.nodes:
        await _restart_with(lockd, node, lockd.authority.server(lockd.node_id(node), name=node, hosts=(OTHER_HOST,)))
    assert all([_hosts(await lockd.certificate(node)) == [OTHER_HOST] for node in lockd.nodes]), "bundles not taken"
    await lockd.agreed(*lockd.nodes)


def _hosts(certificate: x509.Certificate) -> list[str]:
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return names.get_values_for_type(x509.DNSName)


async def _restart_with(lockd: Lockd, node: str, identity: Identity, **settings: str) -> None:
    text = lockd.authority.bundle(identity)
    assert all(kind for kind, _ in pem_blocks(text))
    path = write_private(lockd.folder() / f"{node}-{identity.certificate.serial_number:x}.pem", text)
    await lockd.restart(node, bundle=str(path), **settings)
    lockd.take_identity(node, identity)


@verifies("TC-IDENT-07", part=2, isolation="disruptive", nodes=1, waits="2*lease_settled_max")
async def test_a_moved_and_rotated_node_keeps_its_leader_id(lockd: Lockd) -> None:
    node = lockd.lone
    before, _ = await lockd.leads(node)
    moved = await lockd.detour(node)
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
    moved = await lockd.detour(a)
    await lockd.kill(a)
    rotated = lockd.authority.server(lockd.node_id(a), name=a)
    since = T.now()
    await _restart_with(lockd, a, rotated, endpoint=moved, join=f"{moved},{lockd.url(b)}")

    async def moved_there() -> bool:
        seen = await lockd.members(b)
        return moved in seen and lockd.url(a) not in seen

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
    assert {nowhere(1), nowhere(2)} <= set(await lockd.members(node)), "both node-ids are members"

    await T.sleep_until(expiry, -T.expiry_look, "almost the old lease's end")
    await lockd.member(new, nowhere(2), node)
    look = await lockd.call(wire.members(), node=node)
    if moment(look).hi > expiry.lo:
        raise Inconclusive("the suite looked too late to see the old lease before its end")
    assert nowhere(1) in look.endpoints, "the old lease is gone before its expiry"
    await T.sleep_until(expiry, T.clock_slack, "the old lease's end")
    seen = await lockd.members(node)
    assert nowhere(1) not in seen, f"the old lease is listed after its expiry: {seen}"
    assert nowhere(2) in seen, f"the new member is gone: {seen}"
