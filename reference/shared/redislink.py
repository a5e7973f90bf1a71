"""One multiplexed connection to Redis: commands go out as they come, replies are matched in order.

Invariant: Redis runs the commands of one node in the order of their calls, as long as the connection lasts. Others
rely on it: an undo that is called after an attempt runs after it. This is why a node has one connection for all
scripts and no pool, which would also cap the number of calls under way.

What may happen to a call, and nothing else:

- Redis answers: the call returns the reply, or raises its error.
- The connection is refused or breaks (an outage): every waiting call raises RedisAway at once. Whether its command
  took effect is not known, so nothing is retried here; the caller knows whether a repetition is safe.
- Redis accepts but does not answer (a stall): the call waits. Time limits are the caller's. A caller that gave up is
  skipped when its reply comes, so that the replies behind it still find their calls.

Who owns what. `RedisLink` owns the connection and makes a new one after each loss, until it is closed. `on_connect`
runs on a new connection before `call` may use it: until it has ended, the link counts as down. `_Wire` owns one TCP
connection and its queue of waiting calls, and is never used again after a loss.
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
"""How long one try to connect may take before the next one starts."""


class RedisAway(Exception):  # noqa: N818  # named for what has happened
    """Redis can't be reached; whether a command that was under way took effect is not known."""


class _Wire(asyncio.Protocol):
    """One TCP connection. Commands of one turn of the event loop leave in one packet."""

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
        return  # the caller gave up, for example an attempt at its deadline
    if isinstance(reply, hiredis.ReplyError):
        waiting.set_exception(reply)
    else:
        waiting.set_result(reply)


def _keep_alive(sock: Any) -> None:
    """Lets the kernel find a peer that vanished without closing; a waiting call alone would wait for ever."""
    if sock is None or sock.family not in {socket.AF_INET, socket.AF_INET6}:
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


class RedisLink:
    """Keeps one connection up. `on_connect` runs on each new one before `call` may use it."""

    waits_first = 0.0
    """For how many seconds the link stays away before it connects for the first time."""

    def __init__(self, url: str, on_connect: Callable[["Call"], Awaitable[None]]) -> None:
        address = urlsplit(url)
        self._host = address.hostname or "localhost"
        self._port = address.port or 6379
        self._greeting = _greeting(address.username, address.password, address.path)
        self._on_connect = on_connect
        self._wire: _Wire | None = None
        self._task: asyncio.Task[None] | None = None
        self._came_up = asyncio.Event()
        self.connections = 0

    @property
    def up(self) -> bool:
        return self._wire is not None

    def call(self, *words: str | bytes | float) -> asyncio.Future[Any]:
        """Sends a command and returns the future of its reply. Raises RedisAway when there is no connection."""
        if self._wire is None:
            raise RedisAway("There is no connection to Redis.")
        return self._wire.call(*words)

    async def first(self, seconds: float) -> None:
        """Waits for the first connection, but no longer than `seconds`: a node serves also while Redis is away."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._came_up.wait(), 0 if self.waits_first else seconds)

    def start(self) -> None:
        self._task = asyncio.create_task(self._keep_up())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _keep_up(self) -> None:
        await asyncio.sleep(self.waits_first)
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
    """Returns the commands that every connection starts with: credentials and database of the URL."""
    greeting: list[tuple[str, ...]] = []
    if password:
        names = (unquote(username),) if username else ()
        greeting.append(("AUTH", *names, unquote(password)))
    if path.strip("/"):
        greeting.append(("SELECT", path.strip("/")))
    return greeting


class Subscription(RedisLink):
    """A second connection, for one channel: a connection that subscribes can't run scripts."""

    def __init__(self, url: str, channel: str, receive: Callable[[bytes], None]) -> None:
        super().__init__(url, self._subscribe)
        self._channel = channel
        self._receive = receive

    def _protocol(self) -> _Wire:
        return _Wire(push=self._receive)

    async def _subscribe(self, call: Call) -> None:
        await call("SUBSCRIBE", self._channel)


class RedisClock:
    """An estimate of Redis time, from the `at` of each answer, off by half a round trip at most.

    The estimate of the shortest round trip is kept. It loses trust with age, so that a clock that stepped is followed.
    """

    DRIFT = 0.001
    """Seconds by which the error of an estimate is taken to grow per second."""

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
        """Returns the Redis time, in milliseconds, at a moment of this process's monotonic clock."""
        return (moment + self._offset) * 1000
