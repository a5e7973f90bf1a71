"""One multiplexed connection to Redis: commands go out as they come, replies are matched in order.

There are no retries. A connection that is refused or broken is an outage and fails every waiting call at once;
a Redis that accepts but does not answer is a stall, and the call simply waits. The link connects again by itself.
"""

import asyncio
import socket
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, cast
from urllib.parse import unquote, urlsplit

import hiredis

RETRY_SECONDS = 0.1
CONNECT_SECONDS = 2.0


class RedisAway(Exception):  # noqa: N818  # named for what has happened
    """Redis can't be reached; whether a command that was under way took effect is not known."""


class _Wire(asyncio.Protocol):
    """One TCP connection. Commands of one loop turn leave in one packet."""

    def __init__(self, push: Callable[[Any], None] | None = None) -> None:
        self._reader = hiredis.Reader()
        self._waiting: deque[asyncio.Future[Any]] = deque()
        self._unsent: list[bytes] = []
        self._push = push
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self.lost = self._loop.create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop has classes of its own
        _keep_alive(transport.get_extra_info("socket"))

    def call(self, *words: str | bytes | float) -> asyncio.Future[Any]:
        if self.lost.done():
            raise RedisAway("The connection to Redis is broken.")
        reply: asyncio.Future[Any] = self._loop.create_future()
        if not self._unsent:
            self._loop.call_soon(self._flush)
        self._unsent.append(hiredis.pack_command(words))  # type: ignore[arg-type]  # the stub says one word
        self._waiting.append(reply)
        return reply

    def _flush(self) -> None:
        if self._transport is not None and self._unsent:
            self._transport.write(b"".join(self._unsent))
        self._unsent.clear()

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)
        while (reply := self._reader.gets()) is not False:
            if self._push is not None and isinstance(reply, list) and reply[0] == b"message":
                self._push(reply[2])
            elif self._waiting:
                _settle(self._waiting.popleft(), reply)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.lost.done():
            self.lost.set_result(None)
        while self._waiting:
            reply = self._waiting.popleft()
            if not reply.done():
                reply.set_exception(RedisAway(f"The connection to Redis broke: {exc or 'closed'}."))

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()


def _settle(waiting: asyncio.Future[Any], reply: Any) -> None:
    if waiting.done():
        return  # nobody waits any more: the attempt was answered with timeout
    if isinstance(reply, hiredis.ReplyError):
        waiting.set_exception(reply)
    else:
        waiting.set_result(reply)


def _keep_alive(sock: Any) -> None:
    """A peer that vanishes without a word is found by the kernel, not by our patience."""
    if sock is None or sock.family not in {socket.AF_INET, socket.AF_INET6}:
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


class RedisLink:
    """Keeps one connection up. `on_connect` runs on each new one before anybody else may use it."""

    def __init__(self, url: str, on_connect: Callable[["Call"], Awaitable[None]]) -> None:
        parts = urlsplit(url)
        self._host = parts.hostname or "localhost"
        self._port = parts.port or 6379
        self._greeting = _greeting(parts.username, parts.password, parts.path)
        self._on_connect = on_connect
        self._wire: _Wire | None = None
        self._task: asyncio.Task[None] | None = None
        self._came_up = asyncio.Event()
        self.connections = 0

    @property
    def up(self) -> bool:
        return self._wire is not None

    def call(self, *words: str | bytes | float) -> asyncio.Future[Any]:
        if self._wire is None:
            raise RedisAway("There is no connection to Redis.")
        return self._wire.call(*words)

    async def first(self, seconds: float) -> None:
        """Wait for the first connection, but no longer than this: a node serves also while Redis is away."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._came_up.wait(), seconds)

    def start(self) -> None:
        self._task = asyncio.create_task(self._keep_up())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _keep_up(self) -> None:
        while True:
            with suppress(OSError, RedisAway, TimeoutError, hiredis.ReplyError):
                await self._one_connection()
            await self.before_retry()

    async def before_retry(self) -> None:
        await asyncio.sleep(RETRY_SECONDS)

    async def _one_connection(self) -> None:
        wire = await self._connect()
        try:
            for words in self._greeting:
                await wire.call(*words)
            await self._on_connect(wire.call)
            self._wire = wire
            self.connections += 1
            self._came_up.set()
            await wire.lost
        finally:
            self._wire = None
            wire.close()

    def _protocol(self) -> _Wire:
        return _Wire()

    async def _connect(self) -> _Wire:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(CONNECT_SECONDS):
            _, wire = await loop.create_connection(self._protocol, self._host, self._port)
        return wire


Call = Callable[..., asyncio.Future[Any]]


def _greeting(username: str | None, password: str | None, path: str) -> list[tuple[str, ...]]:
    greeting: list[tuple[str, ...]] = []
    if password:
        names = (unquote(username),) if username else ()
        greeting.append(("AUTH", *names, unquote(password)))
    if path.strip("/"):
        greeting.append(("SELECT", path.strip("/")))
    return greeting


class Subscription(RedisLink):
    """A second connection that listens to one channel."""

    def __init__(self, url: str, channel: str, receive: Callable[[bytes], None]) -> None:
        super().__init__(url, self._subscribe)
        self._channel = channel
        self._receive = receive

    def _protocol(self) -> _Wire:
        return _Wire(push=self._receive)

    async def _subscribe(self, call: Call) -> None:
        await call("SUBSCRIBE", self._channel)


class RedisClock:
    """An estimate of Redis time, as good as half a round trip, from the `at` of each verdict."""

    DRIFT = 0.001
    """Seconds per second by which an old estimate loses trust, so that a stepped clock is followed."""

    def __init__(self) -> None:
        self._offset = 0.0
        self._error = float("inf")
        self._taken = 0.0

    def observe(self, sent: float, received: float, redis_ms: float) -> None:
        error = (received - sent) / 2
        if error <= self._error + (received - self._taken) * self.DRIFT:
            self._offset = redis_ms / 1000 - (sent + received) / 2
            self._error, self._taken = error, received

    def redis_ms(self, moment: float) -> float:
        """The Redis time, in milliseconds, at a moment of this process's monotonic clock."""
        return (moment + self._offset) * 1000
