"""A session's WebSocket as a client sees it: frames with their arrival times, heartbeats, drops and closes.

A task per socket reads all the time, so that a close is noticed when it happens and not when a check next looks. It is
the first of the socket's tasks and lives until the connection ends; heartbeats are the tasks after it and may be
stopped at any time. Whatever the reader takes in (a frame, the close) wakes those who wait.

An upgrade that is refused is no exception: `open` returns a socket whose `status` says so, because some checks expect
it. A socket can end in three ways, and checks need all of them: `close` (the WebSocket handshake, as a client that says
goodbye), `drop` (the TCP connection is aborted, as a client that is lost), and by the server (`closed_by_server`).
Sockets that are still open when the check ends are dropped.
"""

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import aiohttp

from holdfast.check.context import Context
from holdfast.check.finding import Finding
from holdfast.check.no_answer import how_it_ended
from holdfast.check.timeline import Moment
from holdfast.conformance.admission import wire
from holdfast.conformance.admission.features import Features
from holdfast.conformance.admission.identities import User

# Seconds to wait for a frame at least. A healthy target takes milliseconds; this only ends the wait for one that never
# comes.
_FRAME_TIMEOUT = 5.0


@dataclass(frozen=True)
class Frame:
    at: float
    data: Mapping[str, Any]


class Socket:
    """`status` is None unless the upgrade was refused; `closed_at` is None while the socket is open."""

    def __init__(self, context: Context, name: str) -> None:
        self.frames: list[Frame] = []
        self.status: int | None = None
        self.close_code: int | None = None
        self.closed_at: Moment | None = None
        self._context = context
        self._name = name
        # What a demand without a time is given, but not less than a slow machine needs.
        self._patience = max(_FRAME_TIMEOUT, context.timings.of("prompt_never").seconds)
        self._news = asyncio.Event()
        self._ws: aiohttp.ClientWebSocketResponse | None = None
        self._tasks: list[asyncio.Task[None]] = []

    @classmethod
    async def open(
        cls,
        context: Context,
        http: aiohttp.ClientSession,
        base: str,
        instance: str,
        query: Mapping[str, str],
        user: User | None,
    ) -> Self:
        """Asks for an upgrade; returns the socket, whether it was accepted or refused."""
        path = wire.attach(instance, query).path
        parameters = "&".join(f"{key}={value}" for key, value in query.items())
        socket = cls(context, f"ws {parameters}")
        context.transcript.sent(f"GET {path}?{parameters}  (WebSocket)")
        headers = {"Authorization": f"Bearer {user.bearer}"} if user else {}
        try:
            async with asyncio.timeout(socket._patience):
                ws = await http.ws_connect(base + path, params=dict(query), headers=headers, autoclose=True)
        except aiohttp.WSServerHandshakeError as refusal:
            socket.status = refusal.status
            context.transcript.received(f"{refusal.status} upgrade refused")
            return socket
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            socket.status = 0
            context.transcript.received(f"no upgrade: {how_it_ended(error)}")
            return socket
        socket._ws = ws
        socket._tasks.append(asyncio.ensure_future(socket._read(ws)))
        context.stack.push_async_callback(socket.discard)
        return socket

    @property
    def open_now(self) -> bool:
        return self._ws is not None and self.closed_at is None

    @property
    def refused(self) -> bool:
        """Whether it was refused at the upgrade, or closed before any frame."""
        return self.status is not None or (self.close_code is not None and not self.frames)

    async def first_frame(self) -> Mapping[str, Any]:
        """Waits for the first frame and returns it. Raises Finding if none comes."""
        await self._wait(lambda: bool(self.frames) or not self.open_now)
        if not self.frames:
            raise Finding(["a first frame after attach"], self.describe())
        return self.frames[0].data

    async def frame(self, kind: str, *, after: int = 0, why: str = "") -> Frame:
        """Waits for a frame of this type after the first `after` frames; returns it. Raises Finding if none comes."""

        def found() -> Frame | None:
            return next((frame for frame in self.frames[after:] if frame.data.get("type") == kind), None)

        await self._wait(lambda: found() is not None or not self.open_now)
        if (frame := found()) is None:
            raise Finding([f"a {kind} frame"], self.describe(), why)
        return frame

    async def was_refused(self) -> bool:
        """Waits until the target has sent a frame or ended the socket; returns whether it refused it."""
        await self._wait(lambda: bool(self.frames) or not self.open_now)
        return self.refused

    async def beat(self, why: str = "") -> None:
        """Sends one heartbeat and waits for its acknowledgement. Raises Finding if none comes."""
        before = len(self.frames)
        await self._send(wire.HEARTBEAT)
        await self.frame("heartbeat_ack", after=before, why=why)

    async def answers(self) -> bool:
        """Sends a heartbeat; returns whether it was acknowledged."""
        try:
            await self.beat()
        except Finding:
            return False
        return True

    def keep_beating(self, every: float) -> None:
        """Sends heartbeats in the background until the socket closes or `stop_beating`."""

        async def beat() -> None:
            while self.open_now:
                await self._send(wire.HEARTBEAT)
                await asyncio.sleep(every)

        self._tasks.append(asyncio.ensure_future(beat()))

    def stop_beating(self) -> None:
        for task in self._tasks[1:]:
            task.cancel()
        del self._tasks[1:]

    def mute(self) -> Moment:
        """No sign of life from now on, not even a pong, with the TCP connection kept open."""
        self._context.transcript.sent(f"silence  ({self._name})")
        for task in self._tasks:
            task.cancel()
        self._tasks.clear()
        return Moment.now()

    async def drop(self) -> Moment:
        """Aborts the TCP connection without a close frame, as a lost client does; returns when."""
        self.stop_beating()
        before = time.monotonic()
        self._context.transcript.sent(f"TCP abort  ({self._name})")
        if self._ws is not None:
            transport = self._ws._writer.transport  # noqa: SLF001 - aiohttp has no public way to break off
            transport.abort()
        return Moment(before, time.monotonic())

    def inject(self, data: bytes, what: str) -> None:
        """Writes bytes to the TCP connection as they are, for frames that no WebSocket library would build."""
        self._context.transcript.sent(f"{what}  ({self._name})")
        if self._ws is not None and not self._ws.closed:
            self._ws._writer.transport.write(data)  # noqa: SLF001 - aiohttp has no public way to write past its framing

    async def close(self, code: int = 1000) -> Moment:
        self.stop_beating()
        before = time.monotonic()
        self._context.transcript.sent(f"close {code}  ({self._name})")
        if self._ws is not None:
            await self._ws.close(code=code)
        return Moment(before, time.monotonic())

    async def closed_by_server(self, within: float) -> Moment:
        """Waits until the server has closed it; returns when. Raises Finding after `within` seconds."""
        await self._wait(lambda: not self.open_now, within)
        if self.closed_at is None:
            raise Finding([f"the server closes the socket within {within:.2f} s"], "it is still open")
        return self.closed_at

    async def discard(self) -> None:
        """Ends the reader and the connection, at the end of the check."""
        for task in self._tasks:
            task.cancel()
        if self._ws is None:
            return
        if not self._ws.closed:
            await self.drop()
        self._ws._response.close()  # noqa: SLF001 - with its reader cancelled, aiohttp would keep the connection

    def describe(self) -> str:
        if self.status is not None:
            return f"upgrade refused with {self.status}"
        if self.close_code is not None:
            return f"closed {self.close_code} after {len(self.frames)} frames"
        return f"open, {len(self.frames)} frames"

    async def _send(self, data: Mapping[str, Any]) -> None:
        if self._ws is None or self._ws.closed:
            return
        try:
            await self._ws.send_str(json.dumps(data))
        except (ConnectionError, aiohttp.ClientError):
            return

    async def _read(self, ws: aiohttp.ClientWebSocketResponse) -> None:
        alive_at = time.monotonic()
        async for message in ws:
            alive_at = time.monotonic()
            if message.type is aiohttp.WSMsgType.TEXT:
                self._take(message.data, alive_at)
        self.close_code = ws.close_code or 1006
        now = time.monotonic()
        self.closed_at = Moment(max(alive_at, now - 0.001), now)
        self._context.transcript.received(f"close {self.close_code}  ({self._name})")
        self._news.set()

    def _take(self, text: str, at: float) -> None:
        try:
            data = json.loads(text)
        except ValueError:
            data = {"type": "not JSON", "text": text}
        if isinstance(data, dict) and (token := data.get("reconnectionToken")):
            self._context.transcript.secrets.register(str(token))
        self.frames.append(Frame(at, data if isinstance(data, dict) else {"type": "no object", "value": data}))
        if not isinstance(data, dict) or data.get("type") != "heartbeat_ack":
            self._context.transcript.received(f"{text}  ({self._name})")
        self._news.set()

    async def _wait(self, condition: Callable[[], bool], within: float | None = None) -> None:
        try:
            async with asyncio.timeout(within or self._patience):
                while not condition():
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            return


class NoSocket(Socket):
    """The socket of a session on a target without sockets: whatever a check wants of it is not applicable.

    Sessions that only have to be there need none, so heartbeats in the background are no use of it.
    """

    def __init__(self, context: Context, features: Features) -> None:
        super().__init__(context, "no socket")
        self._features = features

    def keep_beating(self, every: float) -> None:
        """Nothing to do: the session lives without."""

    async def first_frame(self) -> Mapping[str, Any]:
        self._features.require("sockets")
        return {}

    async def _send(self, _data: Mapping[str, Any]) -> None:
        self._features.require("sockets")

    async def drop(self) -> Moment:
        self._features.require("sockets")
        return Moment.now()

    async def close(self, _code: int = 1000) -> Moment:
        return await self.drop()

    async def closed_by_server(self, _within: float) -> Moment:
        return await self.drop()

    def mute(self) -> Moment:
        self._features.require("sockets")
        return Moment.now()

    async def discard(self) -> None:
        """Nothing to end."""
