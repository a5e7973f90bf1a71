"""Canaries: connections of our own through a link, which see what the link really does to bytes.

One connection stands before the fault and one is opened under it, so that a fault which covers only new connections,
or only old ones, does not pass for a whole one. Where the far end is a Redis, a second look past the link tells the two
directions apart: a command that was run although its answer never came has passed upwards.
"""

import asyncio
import contextlib
import ssl
import time
import uuid
from dataclasses import dataclass
from typing import Protocol

CONNECT_DEADLINE = 2.0
TLS_RECORD_HEAD = 5
ECHOED = 1000


class Gone(Exception):  # noqa: N818 - what a canary sees, no error
    """The connection is refused, reset or closed."""


@dataclass(frozen=True)
class Seen:
    """One question through the link: its answer after so many seconds, none in that time, or no connection."""

    seconds: float
    answered: bool
    gone: bool = False
    up: int = 0  # bytes
    down: int = 0

    def describe(self) -> str:
        if self.gone:
            return f"gone after {self.seconds * 1000:.0f} ms"
        return f"{'answer' if self.answered else 'no answer'} after {self.seconds * 1000:.0f} ms"


class Question(Protocol):
    """A request that any server of the protocol answers at once, and how its answers end."""

    def request(self) -> bytes: ...

    def complete(self, answer: bytes, times: int = 1) -> bool:
        """Whether so many requests are answered by this."""


class RedisQuestion:
    """SET with a fresh value, so that a look past the link can tell whether it was run."""

    def __init__(self) -> None:
        self.key = f"holdfast:canary:{uuid.uuid4().hex}"
        self.value = ""

    def request(self) -> bytes:
        self.value = uuid.uuid4().hex
        return f"SET {self.key} {self.value} EX 60\r\n".encode()

    def complete(self, answer: bytes, times: int = 1) -> bool:
        return answer.count(b"\r\n") >= times


class RedisEcho:
    """A thousand bytes there and back, to see a rate by."""

    def request(self) -> bytes:
        return b"ECHO " + b"x" * ECHOED + b"\r\n"

    def complete(self, answer: bytes, times: int = 1) -> bool:
        return answer.count(b"x") >= ECHOED * times


class HttpQuestion:
    """Any answer will do: a status line proves the way there and back."""

    def request(self) -> bytes:
        return b"GET /holdfast-canary HTTP/1.1\r\nHost: canary\r\n\r\n"

    def complete(self, answer: bytes, times: int = 1) -> bool:
        return b"\r\n\r\n" in answer and answer.count(b"HTTP/1.1 ") >= times


class TlsQuestion:
    """A first flight of TLS, which any server of it answers before it asks who we are; once on a connection."""

    def request(self) -> bytes:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        flight = ssl.MemoryBIO()
        with contextlib.suppress(ssl.SSLWantReadError):
            context.wrap_bio(ssl.MemoryBIO(), flight).do_handshake()
        return flight.read()

    def complete(self, answer: bytes, times: int = 1) -> bool:
        return len(answer) >= TLS_RECORD_HEAD * times


async def stored(port: int, question: RedisQuestion) -> bool:
    """Whether the question was run, asked of the Redis itself."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(f"GET {question.key}\r\n".encode())
        async with asyncio.timeout(CONNECT_DEADLINE):
            length = int((await reader.readuntil(b"\r\n"))[1:])  # -1: no such key, and no second line
            return length >= 0 and await reader.readexactly(length) == question.value.encode()
    finally:
        writer.close()


class Canary:
    """One connection. What was asked and not answered yet is still waited for by the next question."""

    def __init__(self, port: int, question: Question) -> None:
        self._port = port
        self._question = question
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter | None = None

    async def open(self) -> None:
        try:
            async with asyncio.timeout(CONNECT_DEADLINE):
                self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        except OSError as error:
            raise Gone(str(error)) from error

    async def ask(self, patience: float, times: int = 1) -> Seen:
        """Ask, and wait so long for the answer; `times` over in one go."""
        began = time.monotonic()
        try:
            if self._writer is None:
                await self.open()
            sent, answer, whole = await self._exchange(patience, times)
        except (Gone, OSError):
            return Seen(time.monotonic() - began, answered=False, gone=True)
        return Seen(time.monotonic() - began, answered=whole, up=sent, down=len(answer))

    def close(self) -> None:
        if self._writer is not None:
            with contextlib.suppress(OSError):
                self._writer.transport.abort()
            self._writer = None

    async def _exchange(self, patience: float, times: int) -> tuple[int, bytes, bool]:
        if self._writer is None or self._writer.transport.is_closing():
            raise Gone
        request = b"".join(self._question.request() for _ in range(times))
        self._writer.write(request)
        answer = b""
        try:
            async with asyncio.timeout(patience):
                while not self._question.complete(answer, times):
                    chunk = await self._reader.read(65536)
                    if not chunk:
                        raise Gone
                    answer += chunk
        except TimeoutError:
            return len(request), answer, False
        return len(request), answer, True
