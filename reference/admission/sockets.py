"""The WebSocket of a session (spec 2, 8): attach, heartbeats, and what each kind of ending means.

Invariant: a session has at most one socket, and only that socket may act for it. Redis knows which one: the session
record holds the socket's id, `<node>/<uuid>`. Every script that acts for a socket compares the id, so a socket that
was replaced, taken over or reaped changes nothing, however late its close handler runs.

Who owns what. `open` holds the sockets that this node has attached and not yet closed. The first of `close` (our side
ends it) and `ended` (its reader has stopped) takes a socket out. The task that serves the request owns the reading;
heartbeats are written by a task of their own, so that a stalled Redis does not delay the acknowledgement.

What an ending means (`ended`):

- The client closed with 1000: a leave, the session ends at once.
- The client vanished or closed with another code: a loss, the grace starts.
- This node stops (1001): a loss too; the client comes back through another node.
- Any other close from our side: nothing to do. The cause of it (replacement, take-over, janitor, recovery) has
  changed and logged the session already, and a second log line would be wrong.

Leave and loss are debts (recovery.py), so they are carried out also if Redis is away at that moment. Events follow
the answer of the script, so only the run that changed the session logs.

An attach whose answer is missing may have bound the socket. It is treated as lost, because otherwise no other socket
could be attached until the janitor ends the session.
"""

import asyncio
import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aiohttp import WSMsgType, web

from holdfast.reference.admission.attempts import Attempt, fresh_id
from holdfast.reference.admission.rules import plain
from holdfast.reference.admission.verdicts import Record
from holdfast.reference.admission.wire import BODY_LIMIT, Refusal
from holdfast.reference.shared.redislink import RedisAway

if TYPE_CHECKING:
    from holdfast.reference.admission.node import Node

REFUSED = {"unknown_session": 4404, "not_owner": 4403, "has_socket": 4409, "token_needed": 4410}
NOT_AUTHENTICATED = 4401
TOKEN_INVALID = 4410
GOING_AWAY = 1001
TRY_AGAIN = 1013
CLOSE_SECONDS = 1.0
"""How long a close waits for the close frame of the client."""


@dataclass(slots=True, eq=False)
class Socket:
    """An attached socket. `closed_by_us` is our close code, None while the end is the client's."""

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
        """Serves one socket until it closes. Refusals are close codes, sent after the upgrade."""
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
        """Settles the token of the handshake as the same attempt that HTTP has, then attaches the socket at once."""
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
        """Tells whether the build is right. A handshake may leave it out, since the session was admitted with it."""
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
            self.lost(facts)
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
        """Serves an attached socket from the first frame to the close."""
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
        """Serves frames; returns the close code that the client sent, or None when it sent none."""
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
        """Acts on a heartbeat and ignores every other frame."""
        try:
            frame = json.loads(text)
        except (ValueError, RecursionError):
            return
        if isinstance(frame, dict) and frame.get("type") == "heartbeat":
            await self.acknowledge(socket)
            self.beat(socket)

    async def acknowledge(self, socket: Socket) -> None:
        """Answers a heartbeat at once, whatever Redis does: the socket is alive."""
        await socket.ws.send_str(
            json.dumps({"type": "heartbeat_ack", "timestamp": int(self.node.events.wall_clock() * 1000)})
        )

    def beat(self, socket: Socket) -> None:
        """Writes a heartbeat. Those that come while one is under way are written as one after it."""
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
            pass  # Recovery.put_right writes it when Redis is back
        socket.beating = False
        if socket.beat_again:
            socket.beat_again = False
            self.beat(socket)

    async def missed(self, socket: Socket, beat: Any) -> None:
        """Acts on a heartbeat that found the session gone or taken: the message that should close this socket was lost.

        An end that may still be undone is left alone; the next heartbeat looks again.
        """
        if beat.get("taken"):
            await self.close(socket.id, 4002)
        elif self.node.rules.end_is_final(beat.get("ended"), beat.get("endedMsAgo", 0)):
            await self.node.recovery.restore(socket.session, socket.id, self.node.link.call)

    async def close(self, socket_id: str, code: int) -> None:
        """Closes a socket from our side; returns when the close frame is on its way."""
        socket = self.open.pop(socket_id, None)
        if socket is None:
            return
        socket.closed_by_us = code
        self.node.spawn(self._close(socket, code))
        await asyncio.sleep(0)  # lets the task write its frame

    async def _close(self, socket: Socket, code: int) -> None:
        await socket.ws.close(code=code, drain=False)

    def ended(self, socket: Socket, code: int | None) -> None:
        """Starts what the end of a socket means for its session; the module docstring has the cases."""
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
        """Ends the session, and logs it if this run ended it."""

        def then(left: Any) -> None:
            if left["found"]:
                self.node.follow_ups.left(facts, facts["characterId"])

        self.node.recovery.owe("leave", facts, then)

    def lost(self, facts: Record) -> None:
        """Starts the grace, and logs the loss if this run started it."""

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
