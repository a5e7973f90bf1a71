"""Broken, slow and unfinished requests, with and without TLS: the node keeps serving, and only whole ones count."""

import asyncio
import json
from functools import partial
from urllib.parse import urlsplit

import pytest

from holdfast.check import raw_http
from holdfast.check.finding import Finding, expect
from holdfast.check.no_answer import how_it_ended
from holdfast.check.plain import plain
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.client import Lockd
from holdfast.conformance.lockd.identities import Identity
from holdfast.conformance.lockd.judge import names
from holdfast.conformance.lockd.membership import nowhere
from holdfast.conformance.lockd.wire import Answer, ok

HANGING = 20
# Refusals of what HTTP itself does not know: a transfer coding, a version.
NOT_SPOKEN = (501, 505)
# Without TLS: a plain request, a hello shorter than its announced length, one that announces too much, and others.
NO_TLS = {
    "clear text": raw_http.request("GET", wire.LEADER, {}),
    "half a hello": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "a record too long": b"\x16\x03\x01\xff\xff" + b"\x01" * 70_000,
    "an alert": b"\x15\x03\x03\x00\x02\x02\x28",
    "zeros": bytes(4096),
    "a request of another protocol": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
}


async def _send_raw(lockd: Lockd, pieces: list[bytes], who: Identity | None, *, break_off: bool = False) -> Answer:
    """Sends the bytes inside TLS as `who`; in clear text if `who` is None."""
    return await lockd.raw_exchange(
        lockd.url(lockd.lone),
        pieces,
        within=lockd.T.peer_call_timeout,
        tls=who.client_context if who else None,
        last=True,
        break_off=break_off,
    )


def _announce(endpoint: str, extra: int = 0) -> tuple[bytes, bytes]:
    """Returns head and body of a valid announce; its Content-Length promises `extra` bytes that never come."""
    body = json.dumps({"self_endpoint": endpoint}).encode()
    return raw_http.request("POST", wire.ANNOUNCE, {"Content-Length": str(len(body) + extra)}), body


@verifies("TC-DATA-04", isolation="quiet", nodes=1, waits="5*peer_call_timeout")
async def test_broken_requests_are_refused_or_cut_off(lockd: Lockd) -> None:
    """Bytes that are no request have no caller to answer with a code: a bare refusal or no answer is legal."""
    server = lockd.authority.server(name="x")
    before = await lockd.members(lockd.lone)
    for head in raw_http.BROKEN_HEADS:
        raw = await _send_raw(lockd, [head.format(path=wire.ANNOUNCE).encode("latin-1")], server)
        if raw.status and not 400 <= raw.status < 500 and raw.status not in NOT_SPOKEN:
            raise Finding(["4xx, 501, 505, or no answer"], f"{raw.status} {plain(raw.text)}", plain(head[:80]))
    expect(names(await lockd.members(lockd.lone, "TC-DATA-04")), names(before), why="members after broken requests")


@verifies("TC-DATA-04", isolation="quiet", nodes=1, waits="3*peer_call_timeout")
async def test_an_unfinished_announce_makes_no_member(lockd: Lockd) -> None:
    """A JSON object that is cut off says nothing; one that is whole may count, whatever length was promised."""
    server, before = lockd.authority.server(name="x"), await lockd.members(lockd.lone)
    for part in (0.0, 0.5):
        head, body = _announce(nowhere(1), extra=1)
        await _send_raw(lockd, [head, body[: int(len(body) * part)]], server, break_off=True)
        seen = names(await lockd.members(lockd.lone, "TC-DATA-04"))
        expect(seen, names(before), why=f"{part:.0%} of a body that never came")
    head, body = _announce(nowhere(1))
    raw = await _send_raw(lockd, [head, body], server)
    with lockd.context.arranging("TC-MEMBER-01"):
        expect(raw, ok(), why="control: the whole request, written the same way")
        await lockd.lists(lockd.lone, nowhere(1), why="control: a member now")
    await lockd.leave_as(server, lockd.lone)


@pytest.mark.parametrize("kind", NO_TLS)
@verifies("TC-AUTH-01", isolation="quiet", nodes=1, waits="peer_call_timeout")
async def test_what_is_no_tls_gets_no_http(lockd: Lockd, kind: str) -> None:
    before = await lockd.members(lockd.lone)
    raw = await _send_raw(lockd, [NO_TLS[kind]], None)
    if raw.status and raw.status != 400:
        raise Finding(["no answer, or 400"], f"{raw.status} {plain(raw.text)}", kind)
    after = names(await lockd.members(lockd.lone, "TC-AUTH-01"))
    expect(after, names(before), why="control: a sound caller is served afterwards")


@pytest.mark.parametrize("inside", [True, False], ids=["inside TLS", "before TLS"])
@verifies("TC-AUTH-01", isolation="quiet", nodes=1, waits="peer_call_timeout")
async def test_callers_that_hang_hold_nobody_up(lockd: Lockd, T: SpecTime, inside: bool) -> None:
    head, body = _announce(nowhere(1), extra=1)
    who, said = (lockd.client, head + body) if inside else (None, NO_TLS["half a hello"])
    await lockd.parallel([partial(_hang, lockd, who, said)] * HANGING)
    for _ in range(3):
        answer = await lockd.call(wire.leader(), lockd.authority.coordinator_client("late"), node=lockd.lone)
        expect(answer, ok(), why=f"beside {HANGING} callers that hang")
        sent, received = Moment(answer.sent, answer.sent), Moment(answer.received, answer.received)
        T.at_most("rm_call_max", since=sent, seen=received, what="an answer beside them")


async def _hang(lockd: Lockd, who: Identity | None, said: bytes) -> None:
    """Connects, sends these bytes and nothing more until the check ends."""
    place = urlsplit(lockd.url(lockd.lone))
    try:
        _, writer = await asyncio.open_connection(place.hostname, place.port, ssl=who.client_context if who else None)
    except OSError as error:
        raise Finding([f"room for {HANGING} callers"], how_it_ended(error), late=True) from error
    lockd.context.stack.callback(writer.transport.abort)
    writer.write(said)
    await writer.drain()
