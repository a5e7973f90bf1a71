"""The WebSocket of a session (spec 2, 8): attach, heartbeats, and what each kind of ending means."""

import asyncio
import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aiohttp import WSMsgType, web

from holdfast.reference.admission.attempts import Attempt, fresh_id
from holdfast.reference.admission.redislink import RedisAway
from holdfast.reference.admission.rules import plain
from holdfast.reference.admission.verdicts import Record
from holdfast.reference.admission.wire import BODY_LIMIT, Refusal

if TYPE_CHECKING:
    from holdfast.reference.admission.node import Node

REFUSED = {"unknown_session": 4404, "not_owner": 4403, "has_socket": 4409, "token_needed": 4410}
NOT_AUTHENTICATED = 4401
TOKEN_INVALID = 4410
GOING_AWAY = 1001
TRY_AGAIN = 1013
CLOSE_SECONDS = 1.0
"""How long a close waits for the other side's close frame."""


@dataclass(slots=True, eq=False)
class Socket:
    id: str
    ws: web.WebSocketResponse
    session: Record
    closed_by_us: int | None = None
    beating: bool = False
    beat_again: bool = False


class Sockets:
    def __init__(self, node: "Node") -> None:
        self.node = node
        self.open: dict[str, Socket] = {}

    async def serve(self, request: web.BaseRequest, instance_id: str) -> web.StreamResponse:
        ws = web.WebSocketResponse(timeout=CLOSE_SECONDS, autoping=False, max_msg_size=BODY_LIMIT, compress=False)
        if not ws.can_prepare(request).ok:
            raise Refusal(400, "INVALID_REQUEST", "This call takes WebSocket upgrades only.")
        await ws.prepare(request)
        user_id = self.node.identity.authenticate(request.headers.get("Authorization", ""))
        if user_id is None:
            await self.refuse(ws, NOT_AUTHENTICATED)
        elif not self.node.rules.is_id(instance_id):
            await self.refuse(ws, REFUSED["unknown_session"])
        elif "reconnectionToken" in request.query:
            await self.reconnect(ws, request, user_id, instance_id)
        elif "sessionId" in request.query:
            await self.attach(ws, request.query["sessionId"], user_id, instance_id, {})
        else:
            await self.node.watches.serve(ws, user_id, request.query.get("characterId", ""), instance_id)
        return ws

    async def refuse(self, ws: web.WebSocketResponse, code: int) -> None:
        await ws.close(code=code)

    async def reconnect(
        self, ws: web.WebSocketResponse, request: web.BaseRequest, user_id: str, instance_id: str
    ) -> None:
        """The token presented in the handshake: the same attempt as by HTTP, then the socket at once."""
        now = time.monotonic()
        http, query = self.node.http, request.query
        attempt = Attempt(
            instance_id=instance_id, user_id=user_id, received=now, deadline=self.node.attempts.deadline_of(now)
        )
        attempt.character_id = http.character_of(attempt, query.get("characterId"))
        attempt.build_ok = self.build_of(query.get("clientBuild"), request.headers.get("X-Client-Build"))
        attempt.reconnection_token = http.token_of(attempt, query["reconnectionToken"])
        verdict = await self.node.attempts.settle(attempt)
        if verdict["outcome"] != "success":
            away = verdict["outcome"] == "timeout" or verdict.get("reason") == "INTERNAL_ERROR"
            await self.refuse(ws, TRY_AGAIN if away else TOKEN_INVALID)
            return
        first = {"type": "reconnection_success", "reconnectionToken": verdict["reconnectionToken"]}
        await self.attach(ws, verdict["sessionId"], user_id, instance_id, first)

    def build_of(self, query: str | None, header: str | None) -> bool:
        """The handshake of a running session need not repeat the build; if it does, it has to be right."""
        return (query is None and header is None) or self.node.rules.build_ok(query, header)

    async def attach(
        self, ws: web.WebSocketResponse, session_id: str, user_id: str, instance_id: str, first: Record
    ) -> None:
        socket_id = f"{self.node.settings.node}/{fresh_id()}"
        facts = {"sessionId": session_id, "userId": user_id, "instanceId": instance_id, "socket": socket_id}
        try:
            async with asyncio.timeout(self.node.settings.attempt_deadline):
                attached = await self.node.store.attach(facts)
        except (RedisAway, TimeoutError):
            self.lost(facts)  # it may have been attached, and then nobody else could be
            await self.refuse(ws, TRY_AGAIN)
            return
        if "refused" in attached:
            await self.refused(ws, facts, attached["refused"])
            return
        await self.live(Socket(socket_id, ws, attached["session"]), first)

    async def refused(self, ws: web.WebSocketResponse, facts: Record, refusal: str) -> None:
        if refusal == "not_owner":
            self.node.events.emit(
                "security_event",
                eventType="access_denied",
                userId=facts["userId"],
                instanceId=facts["instanceId"],
                sessionId=facts["sessionId"],
            )
        await self.refuse(ws, REFUSED[refusal])

    async def live(self, socket: Socket, first: Record) -> None:
        """From the first frame to the close."""
        self.open[socket.id] = socket
        code = None
        try:
            await self.greet(socket, first)
            code = await self.listen(socket)
        except ConnectionError:
            pass  # lost while writing: the same as lost while reading
        finally:
            self.ended(socket, code)

    async def greet(self, socket: Socket, first: Record) -> None:
        frame = {
            "type": "session_ready",
            "sessionId": socket.session["sessionId"],
            "characterId": socket.session["characterId"],
            "heartbeatIntervalSeconds": plain(self.node.settings.heartbeat_interval),
            "timestamp": int(self.node.events.wall_clock() * 1000),
        }
        await socket.ws.send_str(json.dumps(frame | first))

    async def listen(self, socket: Socket) -> int | None:
        """Serves frames; returns the close code that the client sent, None when it sent none."""
        while True:
            message = await socket.ws.receive()
            if message.type is WSMsgType.TEXT:
                await self.frame(socket, message.data)
            elif message.type is WSMsgType.PING:
                await socket.ws.pong(message.data)
                self.beat(socket)
            elif message.type is WSMsgType.CLOSE:
                return int(message.data or 0)
            elif message.type in {WSMsgType.CLOSING, WSMsgType.CLOSED, WSMsgType.ERROR}:
                return None

    async def frame(self, socket: Socket, text: str) -> None:
        """Frames that are not understood are ignored."""
        try:
            frame = json.loads(text)
        except (ValueError, RecursionError):
            return
        if isinstance(frame, dict) and frame.get("type") == "heartbeat":
            await self.acknowledge(socket)
            self.beat(socket)

    async def acknowledge(self, socket: Socket) -> None:
        """At once and whatever Redis does: the socket is alive."""
        await socket.ws.send_str(
            json.dumps({"type": "heartbeat_ack", "timestamp": int(self.node.events.wall_clock() * 1000)})
        )

    def beat(self, socket: Socket) -> None:
        """Beats that come while one is under way are written as one after it."""
        if socket.beating:
            socket.beat_again = True
            return
        socket.beating = True
        self.node.spawn(self._beat(socket))

    async def _beat(self, socket: Socket) -> None:
        try:
            beat = await self.node.store.beat(socket.session["sessionId"], socket.id)
            if not beat["alive"]:
                await self.missed(socket, beat)
        except RedisAway:
            pass  # written again as soon as Redis is back
        socket.beating = False
        if socket.beat_again:
            socket.beat_again = False
            self.beat(socket)

    async def missed(self, socket: Socket, beat: Any) -> None:
        """The session is no longer this socket's, and the news of it did not arrive."""
        if beat.get("taken"):
            await self.close(socket.id, 4002)
        elif self.node.rules.end_is_final(beat.get("ended"), beat.get("endedMsAgo", 0)):
            await self.node.recovery.restore(socket.session, socket.id, self.node.link.call)

    async def close(self, socket_id: str, code: int) -> None:
        """Closes a socket from our side; back as soon as the close frame is on its way."""
        socket = self.open.pop(socket_id, None)
        if socket is None:
            return
        socket.closed_by_us = code
        self.node.spawn(self._close(socket, code))
        await asyncio.sleep(0)

    async def _close(self, socket: Socket, code: int) -> None:
        await socket.ws.close(code=code, drain=False)

    def ended(self, socket: Socket, code: int | None) -> None:
        """What the end of a socket means for its session. Whoever closed it from our side has seen to that."""
        self.open.pop(socket.id, None)
        if socket.closed_by_us not in {None, GOING_AWAY}:
            return
        facts = {
            "sessionId": socket.session["sessionId"],
            "userId": socket.session["userId"],
            "instanceId": socket.session["instanceId"],
            "characterId": socket.session["characterId"],
            "socket": socket.id,
        }
        if self.node.rules.is_leave(code) and socket.closed_by_us is None:
            self.left(facts)
        else:
            self.lost(facts)

    def left(self, facts: Record) -> None:
        def then(left: Any) -> None:
            if left["found"]:
                self.node.calls.left(facts, facts["characterId"])

        self.node.recovery.owe("leave", facts, then)

    def lost(self, facts: Record) -> None:
        def then(dropped: Any) -> None:
            if dropped["dropped"]:
                self.emit_lost(facts)

        self.node.recovery.owe("drop", facts, then)

    def emit_lost(self, facts: Record) -> None:
        self.node.events.emit(
            "connection.disconnected",
            instanceId=facts["instanceId"],
            characterId=facts.get("characterId"),
            userId=facts["userId"],
            sessionId=facts["sessionId"],
            reason="network",
        )

    async def close_all(self) -> None:
        for socket_id in list(self.open):
            await self.close(socket_id, GOING_AWAY)
