"""Canaries: connections of our own through a link, which see what the link really does to bytes.

One connection stands before the fault and one is opened under it, so that a fault which covers only new connections,
or only old ones, does not pass for a whole one. Where the far end is a Redis, a second look past the link tells the two
directions apart: a command that was run although its answer never came has passed upwards.
"""

import asyncio
import contextlib
import time
import uuid
from dataclasses import dataclass
from typing import Protocol

CONNECT_DEADLINE = 2.0


class Gone(Exception):  # noqa: N818 - what a canary sees, no error
    """The connection is refused, reset or closed."""


@dataclass(frozen=True)
class Seen:
    """One question through the link: its answer after so many seconds, none in that time, or no connection."""

    seconds: float
    answered: bool
    gone: bool = False

    def describe(self) -> str:
        if self.gone:
            return f"gone after {self.seconds * 1000:.0f} ms"
        return f"{'answer' if self.answered else 'no answer'} after {self.seconds * 1000:.0f} ms"


class Question(Protocol):
    """A request that any server of the protocol answers at once, and how its answer ends."""

    def request(self) -> bytes: ...

    def complete(self, answer: bytes) -> bool: ...


class RedisQuestion:
    """SET with a fresh value, so that a look past the link can tell whether it was run."""

    def __init__(self) -> None:
        self.key = f"holdfast:canary:{uuid.uuid4().hex}"
        self.value = ""

    def request(self) -> bytes:
        self.value = uuid.uuid4().hex
        return f"SET {self.key} {self.value} EX 60\r\n".encode()

    def complete(self, answer: bytes) -> bool:
        return answer.endswith(b"\r\n")


class HttpQuestion:
    """Any answer will do: a status line proves the way there and back."""

    def request(self) -> bytes:
        return b"GET /holdfast-canary HTTP/1.1\r\nHost: canary\r\n\r\n"

    def complete(self, answer: bytes) -> bool:
        return b"\r\n\r\n" in answer


async def stored(port: int, question: RedisQuestion) -> bool:
    """Whether the question was run, asked of the Redis itself."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(f"GET {question.key}\r\n".encode())
        async with asyncio.timeout(CONNECT_DEADLINE):
            return question.value.encode() in await reader.readuntil(b"\r\n") + await _rest(reader)
    finally:
        writer.close()


async def _rest(reader: asyncio.StreamReader) -> bytes:
    try:
        async with asyncio.timeout(0.05):
            return await reader.readuntil(b"\r\n")
    except TimeoutError:  # a missing key has no second line
        return b""


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

    async def ask(self, patience: float) -> Seen:
        """Ask, and wait so long for the answer."""
        began = time.monotonic()
        try:
            if self._writer is None:
                await self.open()
            answered = await self._exchange(patience)
        except (Gone, OSError):
            return Seen(time.monotonic() - began, answered=False, gone=True)
        return Seen(time.monotonic() - began, answered=answered)

    async def answered_late(self, patience: float) -> Seen:
        """Wait on for the answer to what was asked before."""
        began = time.monotonic()
        try:
            answered = await self._read(patience)
        except (Gone, OSError):
            return Seen(time.monotonic() - began, answered=False, gone=True)
        return Seen(time.monotonic() - began, answered=answered)

    def close(self) -> None:
        if self._writer is not None:
            with contextlib.suppress(OSError):
                self._writer.transport.abort()
            self._writer = None

    async def _exchange(self, patience: float) -> bool:
        if self._writer is None:
            raise Gone
        self._writer.write(self._question.request())
        return await self._read(patience)

    async def _read(self, patience: float) -> bool:
        answer = b""
        try:
            async with asyncio.timeout(patience):
                while not self._question.complete(answer):
                    chunk = await self._reader.read(65536)
                    if not chunk:
                        raise Gone
                    answer += chunk
        except TimeoutError:
            return False
        return True
