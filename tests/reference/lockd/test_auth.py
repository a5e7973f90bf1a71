"""Certificates, startup, and hostile callers."""

import ssl
from functools import partial
from typing import Any

import aiohttp
import pytest

from holdfast.conformance.lockd import bundles
from tests.reference.lockd.world import XID, Caller, World, context_for, until, world

SERVER_ROUTES = ("tc/cluster/announce", "tc/cluster/leave", "tc/rm/register", "tc/rm/unregister")
BODY = {"self_endpoint": "https://h:1", "backend_hash": "h", "endpoint": "https://h:1"}


async def refused_by_tls(caller: Caller) -> bool:
    try:
        await caller.get(0, "tc/leader")
    except (aiohttp.ClientError, ssl.SSLError, OSError):
        return True
    return False


async def test_certificates_of_every_wrong_kind_are_refused() -> None:
    async with world() as w:
        wrong = bundles.Wrong(w.authority)
        for bundle in (wrong.expired(), wrong.foreign(w.as_node(0).node_id), wrong.server_usage_only()):
            assert await refused_by_tls(Caller(w, bundle))
        for bundle in (wrong.no_uri(), wrong.client_path("tc"), wrong.client_path("sdk")):
            caller = Caller(w, bundle)
            for answer in (await caller.announce(0, "https://h:1"), await caller.leave(0, guarded=False)):
                assert (answer["status"], answer["error"]) == (403, "tc_cluster_identity_missing")
        for route in SERVER_ROUTES:
            answer = await w.client.post(0, route, BODY)
            assert (answer["status"], answer["error"]) == (403, "tc_forbidden")
        assert await w.lists(0) == [w.endpoint(0)]
        assert (await w.server().announce(0, "https://h:1"))["status"] == 200


async def test_without_a_certificate_there_is_no_connection() -> None:
    async with world() as w:
        nobody = w.server()
        nobody.context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        nobody.context.check_hostname = False
        nobody.context.load_verify_locations(cadata=w.authority.pem)
        assert await refused_by_tls(nobody)


async def test_coordinator_calls_need_a_trusted_authority() -> None:
    async with world(LOCKD_TC_ALLOW_DEFAULT_CA="false") as w:
        answer = await w.client.get(0, "tc/leader")
        assert (answer["status"], answer["error"]) == (403, "tc_forbidden")
        assert (await w.server().announce(0, "https://h:1"))["error"] == "tc_forbidden"


async def test_disabled_checks_keep_the_identity() -> None:
    async with world(LOCKD_TC_ALLOW_DEFAULT_CA="false", LOCKD_TC_DISABLE_AUTH="true") as w:
        assert (await w.client.get(0, "tc/leader"))["status"] == 200
        assert (await w.client.post(0, "tc/cluster/announce", BODY))["error"] == "tc_cluster_identity_missing"
        assert (await w.server().announce(0, "https://h:1"))["status"] == 200


async def test_the_payload_never_names_the_caller() -> None:
    async with world() as w:
        forged = {"self_endpoint": "https://h:1", "identity": w.as_node(0).node_id, "node_id": w.as_node(0).node_id}
        caller = w.server()
        headers = {"X-Identity": w.as_node(0).node_id}
        assert (await caller.post(0, "tc/cluster/announce", forged, headers))["status"] == 200
        assert await w.lists(0) == sorted(["https://h:1", w.endpoint(0)])
        await caller.post(0, f"tc/cluster/leave?identity={w.as_node(0).node_id}", forged, headers)
        assert await w.lists(0) == [w.endpoint(0)]


async def test_a_reissued_bundle_is_the_same_member() -> None:
    async with world() as w:
        node_id = bundles.new_node_id()
        first, second = (Caller(w, w.authority.client_bundle(bundles.server(node_id)), node_id) for _ in range(2))
        await first.announce(0, "https://h:1")
        await second.announce(0, "https://h:2")
        assert await w.lists(0) == sorted(["https://h:2", w.endpoint(0)])


async def test_a_plain_node_leads_itself_and_takes_no_members() -> None:
    async with world(LOCKD_DISABLE_MTLS="true") as w:
        seen = await until(partial(w.leader, 0))
        assert len(seen["leader_id"]) == 64
        assert (await w.client.announce(0, "http://h:1"))["error"] == "tc_cluster_identity_missing"
        assert (await w.client.leave(0))["error"] == "tc_cluster_identity_missing"
        assert await w.lists(0) == [w.endpoint(0)]


async def ends(w: World, **settings: str) -> str:
    number = w.add()
    w.start(number, **settings)
    assert await w.ended(number) == 1
    return w.log(number).read_text()


async def test_startup_fails_hard() -> None:
    async with world() as w:
        nowhere = "https://127.0.0.1:9,https://127.0.0.1:10"
        assert "No join target accepted" in await ends(w, LOCKD_JOIN=nowhere)
        both = f"{w.endpoint(0)},http://127.0.0.1:{w.ports[0] + 1}"
        for settings in ({}, {"LOCKD_TC_DISABLE_AUTH": "true"}):
            log = await ends(w, LOCKD_DISABLE_MTLS="true", LOCKD_JOIN=both, LOCKD_SELF=both.split(",")[1], **settings)
            assert "needs mTLS" in log
        nameless = w.folder / "nameless.pem"
        bundles.write(nameless, w.authority.server_bundle(bundles.server("x").changed(uris=())))
        assert "needs mTLS" in await ends(w, LOCKD_BUNDLE=str(nameless))
        assert "can't be read" in await ends(w, LOCKD_BUNDLE=str(w.folder / "absent.pem"))
        assert await w.lists(0) == [w.endpoint(0)]


async def test_one_accepting_seed_is_enough() -> None:
    async with world() as w:
        number = w.add()
        w.start(number, LOCKD_JOIN=f"https://127.0.0.1:9,{w.endpoint(0)}")
        await w.ready(number)
        assert w.endpoint(number) in await w.lists(0)


HOSTILE: list[tuple[str, Any, int]] = [
    ("tc/cluster/announce", b"{", 400),
    ("tc/cluster/announce", b"[]", 400),
    ("tc/cluster/announce", b"\xff\xfe", 400),
    ("tc/cluster/announce", b"[" * 100_000, 400),
    ("tc/cluster/announce", b" " * (10 << 20), 413),
    ("tc/cluster/announce", {"self_endpoint": 5}, 400),
    ("tc/cluster/announce", b'{"self_endpoint": "https://h:1/\\ud800"}', 400),
    ("tc/cluster/announce", {"self_endpoint": "https://h:1\r\nX: y"}, 400),
    ("tc/lease/acquire", {"candidate_id": "x", "candidate_endpoint": "https://h", "term": 2**70, "ttl_ms": 1}, 400),
    ("tc/lease/acquire", {"candidate_id": "x", "candidate_endpoint": "https://h", "term": -1, "ttl_ms": 1}, 400),
    ("tc/lease/acquire", {"candidate_id": "x", "candidate_endpoint": "https://h", "term": 1.5, "ttl_ms": 1}, 400),
    ("tc/lease/acquire", {"candidate_id": "x", "candidate_endpoint": "https://h", "term": True, "ttl_ms": 1}, 400),
    ("tc/lease/acquire", {"candidate_id": "x", "candidate_endpoint": "https://h", "term": 9, "ttl_ms": 0}, 400),
    ("tc/lease/renew", {}, 400),
    ("tc/lease/release", {"leader_id": "x"}, 400),
    ("tc/rm/register", {"backend_hash": "h", "endpoint": "ftp://h"}, 400),
    ("tc/rm/register", {"backend_hash": " ", "endpoint": "https://h"}, 400),
    ("txn/decide", {"txn_id": XID, "state": "maybe"}, 400),
    ("txn/decide", {"txn_id": XID.upper(), "state": "commit"}, 400),
    ("txn/decide", {"txn_id": XID, "state": "commit", "participants": [5]}, 400),
    ("txn/decide", {"txn_id": XID, "state": "commit", "participants": [{"namespace": "n"}]}, 400),
    ("txn/commit", {"txn_id": XID, "tc_term": "1"}, 400),
    ("nowhere", {}, 404),
]


async def test_bad_input_is_refused_and_changes_nothing() -> None:
    async with world() as w:
        caller, before = w.server(), await until(partial(w.leader, 0))
        for route, body, status in HOSTILE:
            answer = await caller.post(0, route, body)
            assert answer["status"] == status, (route, body if len(str(body)) < 200 else "…", answer)
            assert answer["error"]
        assert await w.lists(0) == [w.endpoint(0)]
        after = await w.leader(0)
        assert after
        assert (after["leader_id"], after["term"]) == (before["leader_id"], before["term"])
        assert (await w.client.post(0, "txn/replay", {"txn_id": XID}))["error"] == "txn_not_found"


async def test_plain_http_on_the_tls_port_is_cut_off() -> None:
    async with world() as w:
        async with aiohttp.ClientSession() as http:
            with pytest.raises(aiohttp.ClientError):
                await http.get(f"http://127.0.0.1:{w.ports[0]}/v1/tc/leader")
        assert (await w.client.get(0, "tc/leader"))["status"] == 200


def test_a_context_has_the_leaf_and_not_the_authority() -> None:
    authority = bundles.Authority.new()
    assert context_for(authority.client_bundle(bundles.tc_client("x"))).verify_mode is ssl.CERT_REQUIRED
