"""Hostile WebSocket clients: bad handshakes are refused, and no frame ends a session that its owner did not leave."""

import base64
import functools
import json
from collections.abc import Awaitable, Callable

from holdfast.check import raw_http
from holdfast.check.finding import expect
from holdfast.check.verifies import verifies
from holdfast.conformance.admission import rawtcp
from holdfast.conformance.admission.bystanders import bystanders
from holdfast.conformance.admission.client import Admission, Instance
from holdfast.conformance.admission.judging import turned_down
from holdfast.conformance.admission.rawtcp import frame
from holdfast.conformance.admission.wire import client_error, success
from holdfast.conformance.shared.wire import cut_off, status

# What HTTP has for requests of a form or version that a server does not know.
NOT_HTTP = (501, 505)
CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA
LARGE = 5_000_000
NESTED = b"[" * 5_000 + b"]" * 5_000

# Valid frames whose content means nothing.
NONSENSE = {
    "binary": frame(BINARY, b"\x00\x01\x02"),
    "binary heartbeat": frame(BINARY, b'{"type": "heartbeat"}'),
    "empty text": frame(TEXT),
    "no JSON": frame(TEXT, b"garbage"),
    "half of a JSON text": frame(TEXT, b'{"type": "heart'),
    "no object": frame(TEXT, b'["heartbeat"]'),
    "null": frame(TEXT, b"null"),
    "unknown type": frame(TEXT, b'{"type": "evil"}'),
    "type of a wrong kind": frame(TEXT, b'{"type": {"type": "heartbeat"}}'),
    "deep nesting": frame(TEXT, NESTED),
    "many digits": frame(TEXT, b"9" * 5_000),
    "NUL": frame(TEXT, b'{"type": "\\u0000"}\x00'),
    "unasked pong": frame(PONG, b"x"),
    "full ping": frame(PING, b"x" * 125),
    "in fragments": frame(TEXT, b'{"type": ', first=0) + frame(CONTINUATION, b'"evil"}'),
}

# Frames that RFC 6455 forbids, or that are larger than any message of a session.
FORBIDDEN = {
    "unmasked": frame(TEXT, b"{}", masked=False),
    "reserved opcode": frame(0x3, b"x"),
    "reserved control opcode": frame(0xB, b"x"),
    "reserved bits": frame(TEXT, b"{}", first=0xF0),
    "continuation of nothing": frame(CONTINUATION, b"x"),
    "text inside a fragmented text": frame(TEXT, b"a", first=0) + frame(TEXT, b"b"),
    "ping of 126 bytes": frame(PING, b"x" * 126),
    "ping in fragments": frame(PING, b"x", first=0),
    "invalid UTF-8": frame(TEXT, b"\xc3\x28\xff"),
    "length with the top bit set": frame(TEXT, b"x", claim=1 << 63),
    "a terabyte promised": frame(TEXT, b"x", claim=1 << 40),
    "close of one byte": frame(CLOSE, b"\x03"),
    "close 999": frame(CLOSE, (999).to_bytes(2)),
    "close 1005": frame(CLOSE, (1005).to_bytes(2)),
    "close with invalid UTF-8": frame(CLOSE, (1001).to_bytes(2) + b"\xff"),
    "no WebSocket at all": b"GET / HTTP/1.1\r\n\r\n",
    "five megabytes": frame(TEXT, b"a" * LARGE),
}


@verifies("AD-ADMIT-06", waits="wait_tolerance")
async def test_frames_without_sense_end_no_session(admission: Admission) -> None:
    """A target may ignore such a frame or close the socket; in both cases the owner keeps the session."""

    async def send(arena: Instance, name: str, data: bytes) -> None:
        character = await admission.character()
        session, socket = await arena.join(character)
        socket.inject(data, f"frame: {name}")
        if not await socket.answers():
            gone = await admission.lose(socket)
            resumed = await arena.reclaim(character, session.token, gone=gone)
            expect(resumed, success(session.session_id), why=f"the session after the frame: {name}")

    await _with_each(admission, NONSENSE, send)


@verifies("AD-ADMIT-06", waits="wait_tolerance")
async def test_forbidden_frames_end_no_session(admission: Admission) -> None:
    """These break the connection for good; to the target the client is lost, and it may reconnect."""

    async def send(arena: Instance, name: str, data: bytes) -> None:
        character = await admission.character()
        session, socket = await arena.join(character)
        socket.inject(data, f"frame: {name}")
        gone = await admission.lose(socket)
        resumed = await arena.reclaim(character, session.token, gone=gone)
        expect(resumed, success(session.session_id), why=f"the session after the frame: {name}")

    await _with_each(admission, FORBIDDEN, send)


async def _with_each(
    admission: Admission, frames: dict[str, bytes], send: Callable[[Instance, str, bytes], Awaitable[None]]
) -> None:
    async with bystanders(admission):
        arena = await admission.instance(room=len(frames))
        await admission.parallel([functools.partial(send, arena, name, data) for name, data in frames.items()])


@verifies("AD-ADMIT-06")
async def test_hostile_handshakes_are_refused(admission: Admission) -> None:
    async with bystanders(admission) as present:
        user, character = present.inside.user, present.inside.id
        for query in (
            {"sessionId": ""},
            {"sessionId": "x"},
            {"sessionId": "\x00"},
            {"sessionId": "*"},
            {"sessionId": "a" * 5_000},
            {"sessionId": character},
            {"reconnectionToken": ""},
            {"reconnectionToken": "x", "characterId": "x"},
            {"reconnectionToken": "\x00", "characterId": character},
            {"reconnectionToken": "a" * 5_000, "characterId": character},
            {},
        ):
            socket = await present.arena.try_attach(query, user)
            said = ", ".join(f"{name} {json.dumps(value[:40])}" for name, value in query.items())
            with admission.context.collect():
                await turned_down(socket, f"a handshake with {said or 'nothing'}")


@verifies("AD-ADMIT-06")
async def test_broken_upgrades_are_refused(admission: Admission) -> None:
    arena, character = await admission.instance(), await admission.character()
    admission.features.require("sockets")
    session = await arena.admit(character)
    path = f"/instances/{arena.id}/ws?sessionId={session.session_id}"
    sound = {
        "Authorization": f"Bearer {character.user.bearer}",
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": base64.b64encode(bytes(16)).decode(),
    }
    broken = [
        ("GET", {"Upgrade": "evil"}),
        ("GET", {"Connection": "close"}),
        ("GET", {"Sec-WebSocket-Version": "99"}),
        ("POST", {}),
    ]
    for method, headers in broken:
        answer = await rawtcp.exchange(admission, [raw_http.request(method, path, sound | headers)])
        said = ", ".join(f"{name}: {value}" for name, value in headers.items()) or "sound headers"
        with admission.context.collect():
            expect(answer, client_error(), cut_off(), status(*NOT_HTTP), why=f"{method} with {said}")
    socket = await arena.attach(session.session_id, character)
    await socket.beat()
