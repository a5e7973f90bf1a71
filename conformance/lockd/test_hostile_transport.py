"""Broken, slow and unfinished requests, inside TLS and instead of it: the node lives on, and only whole ones count."""

import asyncio
import json
from functools import partial
from urllib.parse import urlsplit

import pytest

from holdfast import byhand
from holdfast.check import verifies
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.client import Lockd
from holdfast.conformance.lockd.identities import Identity
from holdfast.conformance.lockd.membership import nowhere
from holdfast.conformance.lockd.wire import ok
from holdfast.finding import Finding, expect
from holdfast.spectime import SpecTime
from holdfast.timeline import Moment

HANGING = 20
# A request without TLS, a hello that ends before it has said what it announced, one that announces too much, and none.
NO_TLS = {
    "clear text": byhand.request("GET", wire.LEADER, {}),
    "half a hello": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "a record too long": b"\x16\x03\x01\xff\xff" + b"\x01" * 70_000,
    "an alert": b"\x15\x03\x03\x00\x02\x02\x28",
    "zeros": bytes(4096),
    "a request of another protocol": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
}


async def _by_hand(lockd: Lockd, pieces: list[bytes], who: Identity | None, *, break_off: bool = False) -> byhand.Heard:
    """As `who` inside TLS; as nobody instead of it."""
    heard = await byhand.exchange(
        lockd.context,
        lockd.url(lockd.lone),
        pieces,
        patience=lockd.T.peer_call_timeout,
        tls=who.client_context if who else None,
        last=True,
        break_off=break_off,
    )
    lockd.context.transcript.received(f"{heard.status} {heard.body[:80]!r}" if heard.status else heard.note)
    return heard


def _announce(endpoint: str, extra: int = 0) -> tuple[bytes, bytes]:
    """A sound announce, head and body apart; `extra` bytes are promised that never come."""
    body = json.dumps({"self_endpoint": endpoint}).encode()
    return byhand.request("POST", wire.ANNOUNCE, {"Content-Length": str(len(body) + extra)}), body


@verifies("TC-DATA-04", isolation="quiet", nodes=1, waits="5*peer_call_timeout")
async def test_broken_requests_are_refused_or_cut_off(lockd: Lockd) -> None:
    """Below the level of a request there is nobody to tell a code: a bare 4xx or no answer will do."""
    server = lockd.authority.server(name="x")
    before = await lockd.members(lockd.lone)
    for head in byhand.BROKEN_HEADS:
        heard = await _by_hand(lockd, [head.format(path=wire.ANNOUNCE).encode("latin-1")], server)
        if heard.status and not 400 <= heard.status < 500:
            raise Finding(["4xx, or no answer"], f"{heard.status} {heard.body[:80]!r}", f"{head[:80]!r}")
    expect(await lockd.members(lockd.lone), before, why="members after broken requests")


@verifies("TC-DATA-04", isolation="quiet", nodes=1, waits="3*peer_call_timeout")
async def test_an_unfinished_announce_makes_no_member(lockd: Lockd) -> None:
    server, before = lockd.authority.server(name="x"), await lockd.members(lockd.lone)
    for part in (0.0, 0.5, 1.0):
        head, body = _announce(nowhere(1), extra=1)
        await _by_hand(lockd, [head, body[: int(len(body) * part)]], server, break_off=True)
        expect(await lockd.members(lockd.lone), before, why=f"{part:.0%} of a body that never came")
    head, body = _announce(nowhere(1))
    heard = await _by_hand(lockd, [head, body], server)
    expect(heard.status, 200, why="control: the whole request, written the same way")
    expect(await lockd.members(lockd.lone), sorted([*before, nowhere(1)]), why="control: a member now")
    await lockd.part(server, lockd.lone)


@pytest.mark.parametrize("kind", NO_TLS)
@verifies("TC-AUTH-01", isolation="quiet", nodes=1, waits="peer_call_timeout")
async def test_what_is_no_tls_gets_no_http(lockd: Lockd, kind: str) -> None:
    before = await lockd.members(lockd.lone)
    heard = await _by_hand(lockd, [NO_TLS[kind]], None)
    if heard.status and heard.status != 400:
        raise Finding(["no answer, or 400"], f"{heard.status} {heard.body[:80]!r}", kind)
    expect(await lockd.members(lockd.lone), before, why="control: a sound caller is served afterwards")


@pytest.mark.parametrize("inside", [True, False], ids=["inside TLS", "before TLS"])
@verifies("TC-AUTH-01", isolation="quiet", nodes=1, waits="peer_call_timeout")
async def test_callers_that_hang_hold_nobody_up(lockd: Lockd, T: SpecTime, inside: bool) -> None:
    head, body = _announce(nowhere(1), extra=1)
    who, said = (lockd.client, head + body) if inside else (None, NO_TLS["half a hello"])
    await lockd.parallel([partial(_hang, lockd, who, said)] * HANGING)
    for _ in range(3):
        answer = await lockd.call(wire.leader(), lockd.authority.coordinator_client("late"), node=lockd.lone)
        expect(answer, ok(), why=f"beside {HANGING} callers that hang")
        asked, told = Moment(answer.sent, answer.sent), Moment(answer.received, answer.received)
        T.at_most("rm_call_max", since=asked, seen=told, what="an answer beside them")


async def _hang(lockd: Lockd, who: Identity | None, said: bytes) -> None:
    """Connect, say that much and nothing more until the check ends."""
    place = urlsplit(lockd.url(lockd.lone))
    try:
        _, writer = await asyncio.open_connection(place.hostname, place.port, ssl=who.client_context if who else None)
    except OSError as error:
        raise Finding([f"room for {HANGING} callers"], repr(error), late=True) from error
    lockd.context.stack.callback(writer.transport.abort)
    writer.write(said)
    await writer.drain()
