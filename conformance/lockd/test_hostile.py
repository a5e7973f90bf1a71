"""Hostile callers: wrong certificates, forged headers, malformed bodies."""

import datetime as dt
from dataclasses import replace
from http import HTTPStatus

import pytest
from multidict import CIMultiDict

from holdfast.check.finding import Finding, demand, expect
from holdfast.check.verifies import verifies
from holdfast.check.x509 import CLIENT_AUTH, SERVER_AUTH
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.client import Lockd
from holdfast.conformance.lockd.identities import Authority, Identity
from holdfast.conformance.lockd.judge import names
from holdfast.conformance.lockd.membership import nowhere
from holdfast.conformance.lockd.spy import spies
from holdfast.conformance.lockd.walks.malformed import malformed_requests
from holdfast.conformance.lockd.wire import no_handshake, ok, refused
from holdfast.conformance.shared.wire import Request, not_status

BIG = 10 * 1024 * 1024
SERVER_URI = "spiffe://lockd/server/hostile"
# Headers that describe a connection or a body, not the caller.
HOP_BY_HOP = {"host", "connection", "content-length", "transfer-encoding", "accept-encoding"}


def _wrong(lockd: Lockd, kind: str) -> Identity:
    """Returns a caller of this kind: a server whose certificate is wrong in exactly one thing."""
    both, hour = (SERVER_AUTH, CLIENT_AUTH), dt.timedelta(hours=1)
    if kind == "foreign CA":
        foreign = Authority.new("foreign").server("hostile", name=kind)
        return replace(foreign, ca_pem=lockd.authority.pem)
    if kind == "namesake CA":
        namesake = Authority.new(lockd.authority.common_name).server("hostile", name=kind)
        return replace(namesake, ca_pem=lockd.authority.pem)
    if kind == "only for servers":
        return lockd.authority.identity(kind, (SERVER_URI,), (SERVER_AUTH,), hosts=("*",))
    begins, ends = (-3 * hour, -hour / 2) if kind == "expired" else (hour, 3 * hour)
    return lockd.authority.identity(kind, (SERVER_URI,), both, hosts=("*",), begins=begins, ends=ends)


WRONG = pytest.mark.parametrize("kind", ["foreign CA", "namesake CA", "expired", "not yet valid", "only for servers"])


@WRONG
@verifies("TC-AUTH-01")
async def test_client_routes_are_closed_to_wrong_certificates(lockd: Lockd, kind: str) -> None:
    legal = no_handshake(), refused("tc_forbidden"), refused("tc_client_required")
    for request in (wire.leader(), wire.members(), wire.backends(), Request("POST", wire.ACQUIRE, {})):
        with lockd.context.collect():
            answer = await lockd.call(request, _wrong(lockd, kind), unwelcome=True)
            expect(answer, *legal, why=f"{request.path} with a certificate: {kind}")
            expect(await lockd.call(request), not_status(403), why=f"control: {request.path} with a good one")


@WRONG
@verifies("TC-AUTH-02", isolation="quiet", nodes=1)
async def test_wrong_certificates_change_nothing(lockd: Lockd, kind: str) -> None:
    node, legal = lockd.lone, (no_handshake(), refused("tc_forbidden"), refused("tc_server_required"))
    before = await _lists(lockd, node)
    for request in (wire.announce(nowhere(1)), wire.register("h1", nowhere(1)), wire.leave()):
        answer = await lockd.call(request, _wrong(lockd, kind), node=node, unwelcome=True)
        expect(answer, *legal, why=f"{request.path} with a certificate: {kind}")
    expect(await _lists(lockd, node), before, why="lists after refused calls")
    await lockd.member(lockd.authority.server(name="good"), nowhere(1), node)


async def _lists(lockd: Lockd, node: str) -> str:
    """Returns members and registered endpoints as a finding shows them."""
    return f"members {names(await lockd.members(node, 'TC-AUTH-02'))}; h1: {names(await lockd.entries('h1', node))}"


@verifies("TC-AUTH-02", isolation="quiet", nodes=1, waits="next_tick_max")
async def test_a_replayed_call_speaks_for_the_one_who_replays_it(lockd: Lockd) -> None:
    """What a node has sent to a member, headers included, has no effect under another certificate."""
    node, (spy,) = lockd.lone, await spies(lockd, 1)
    await spy.join(node)
    sent = await spy.awaits("TC-LOOP-02", wire.ANNOUNCE, "next_tick_max", what="an announce of the node")
    headers = {name: value for name, value in sent.headers.items() if name.lower() not in HOP_BY_HOP}
    announce = Request("POST", wire.ANNOUNCE, sent.body, CIMultiDict({**headers, **lockd.dialect.replica}))
    leave = Request("POST", wire.LEAVE, {}, CIMultiDict({**headers, **lockd.dialect.guard}))
    before, thief = await lockd.members(node), lockd.authority.server(name="thief")
    for request in (announce, leave):
        answer = await lockd.call(request, node=node)
        expect(answer, refused("tc_forbidden"), why=f"{request.path} replayed by a client")
    expect(await lockd.call(leave, thief, node=node), ok(), why="a replayed leave, by a server that is no member")
    expect(names(await lockd.members(node)), names(before), why="the members whose calls were replayed")


@verifies("TC-AUTH-02", isolation="quiet", nodes=1)
async def test_forged_headers_do_not_make_a_server(lockd: Lockd) -> None:
    node = lockd.lone
    before = await _lists(lockd, node)
    forged = {
        "X-Forwarded-Client-Cert": f"URI={SERVER_URI}",
        "X-SSL-Client-Verify": "SUCCESS",
        "X-SSL-Client-S-DN": "CN=hostile",
        "Authorization": "Bearer server",
        **lockd.dialect.guard,
        **lockd.dialect.replica,
    }
    for request in (wire.announce(nowhere(1)), wire.register("h1", nowhere(1)), wire.leave()):
        answer = await lockd.call(replace(request, headers=forged), node=node)
        expect(answer, refused("tc_forbidden"), why=f"{request.path} as a client with forged headers")
    expect(await _lists(lockd, node), before, why="nothing has changed")


@pytest.mark.parametrize("body", [b"{", b"[]", b'"text"', b'{"self_endpoint": 5}', b"\xff\xfe"])
@verifies("TC-DATA-04", isolation="quiet", nodes=1)
async def test_a_body_that_is_no_request_is_refused_and_changes_nothing(lockd: Lockd, body: bytes) -> None:
    node, server = lockd.lone, lockd.authority.server(name="x")
    before = await lockd.members(node)
    for path in (wire.ANNOUNCE, wire.REGISTER, wire.ACQUIRE):
        request = Request("POST", path, headers={"Content-Type": "application/json"})
        answer = await lockd.call(request, server, node=node, data=body)
        if not 400 <= answer.status < 500:
            raise Finding(
                ["400 with an error code"],
                answer.describe(),
                f"{path} with the body {body.decode(errors='backslashreplace')}",
            )
        demand(answer.code, "an error code", f"{answer.describe()}: {answer.text}")
    expect(names(await lockd.members(node, "TC-DATA-04")), names(before), why="the list after refused calls")


@verifies("TC-DATA-04", isolation="quiet", nodes=1)
async def test_a_huge_body_is_refused_or_served_as_a_whole(lockd: Lockd) -> None:
    """The spec sets no limit: a node that accepts the call lists the member, one that refuses it changes nothing."""
    node, server = lockd.lone, lockd.authority.server(name="x")
    before, endpoint = names(await lockd.members(node)), nowhere(1) + "/" + "x" * BIG
    answer = await lockd.call(wire.announce(endpoint), server, node=node, unwelcome=True)
    if answer.status == HTTPStatus.OK:
        there = endpoint in await lockd.members(node, "TC-DATA-04")
        demand(there, "the member, since its announce was accepted", "a list without it")
        await lockd.arrange("TC-LEAVE-01", wire.leave(lockd.dialect.guard), server, node=node)
    elif answer.answered and not 400 <= answer.status < 500:
        raise Finding(["4xx, a cut connection, or a member"], answer.describe(), "a body of ten megabytes")
    expect(names(await lockd.members(node, "TC-DATA-04")), before, why="the list after the huge body")


@verifies("TC-DATA-04", isolation="quiet", nodes=1)
async def test_half_a_character_is_refused_or_served(lockd: Lockd) -> None:
    """JSON can spell half a character, UTF-8 can't: whatever a node makes of it, it goes on to serve its lists."""
    node, server = lockd.lone, lockd.authority.server(name="x")
    body = f'{{"self_endpoint": "{nowhere(1)}/\\ud800"}}'.encode()
    request = Request("POST", wire.ANNOUNCE, headers={"Content-Type": "application/json"})
    answer = await lockd.call(request, server, node=node, data=body)
    legal = answer.ok or 400 <= answer.status < 500
    demand(legal, "200, or a refusal with a 4xx", answer.describe(), "an endpoint with half a character")
    expect(await lockd.call(wire.members(), node=node), ok(), why="the member list afterwards")
    await lockd.leave_as(server, node)
    await lockd.member(server, nowhere(1), node)


@verifies("TC-DATA-04", isolation="quiet", nodes=1)
async def test_a_call_with_one_thing_wrong_is_refused_with_a_code(lockd: Lockd) -> None:
    node, server = lockd.lone, lockd.authority.server(name="x")
    for what, request in malformed_requests(nowhere(1), "h1").items():
        answer = await lockd.call(request, server, node=node)
        refusal = 400 <= answer.status < 500 and answer.code
        with lockd.context.collect():
            demand(refusal, "4xx with an error code", f"{answer.describe()}: {answer.text}", what)
    await lockd.member(server, nowhere(1), node)
