"""Canaries: connections of our own through a link, which see what the link really does to bytes.

A canary asks a question that any server of the protocol answers at once, and notes how long the answer took, that none
came, or that the connection was gone. One canary is connected before the fault and one under it, so that a fault which
covers only new connections, or only old ones, is not taken for a whole one. Where the far end is a Redis, a second look
past the link tells the two directions apart: a command that was run although its answer never came has passed upwards.

What is asked is in `questions`; datagrams have canaries of their own, in `datagram_canary`.
"""

import asyncio
import contextlib
import time
from dataclasses import dataclass

from holdfast.chaos.faults.questions import Question, RedisQuestion

CONNECT_DEADLINE = 2.0


class Gone(Exception):  # noqa: N818 - what a canary sees, no error
    """The connection is refused, reset or closed."""


@dataclass(frozen=True)
class Seen:
    """What one question through the link showed: an answer after `seconds`, none by then, or no connection."""

    seconds: float
    answered: bool
    gone: bool = False
    up: int = 0  # bytes
    down: int = 0

    def describe(self) -> str:
        if self.gone:
            return f"gone after {self.seconds * 1000:.0f} ms"
        return f"{'answer' if self.answered else 'no answer'} after {self.seconds * 1000:.0f} ms"


async def stored(port: int, question: RedisQuestion) -> bool:
    """Ask the Redis itself, past the link, whether the question was run."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(f"GET {question.key}\r\n".encode())
        async with asyncio.timeout(CONNECT_DEADLINE):
            length = int((await reader.readuntil(b"\r\n"))[1:])  # -1: no such key, and no second line
            return length >= 0 and await reader.readexactly(length) == question.value.encode()
    finally:
        writer.close()


class Canary:
    """One connection. An answer that comes late counts for the next question."""

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

    async def ask(self, within: float, times: int = 1) -> Seen:
        """Ask `times` questions at once, and wait `within` seconds for all their answers."""
        began = time.monotonic()
        try:
            if self._writer is None:
                await self.open()
            sent, answer, whole = await self._exchange(within, times)
        except (Gone, OSError):
            return Seen(time.monotonic() - began, answered=False, gone=True)
        return Seen(time.monotonic() - began, answered=whole, up=sent, down=len(answer))

    def close(self) -> None:
        if self._writer is not None:
            with contextlib.suppress(OSError):
                self._writer.transport.abort()
            self._writer = None

    async def _exchange(self, within: float, times: int) -> tuple[int, bytes, bool]:
        if self._writer is None or self._writer.transport.is_closing():
            raise Gone
        request = b"".join(self._question.request() for _ in range(times))
        self._writer.write(request)
        answer = b""
        try:
            async with asyncio.timeout(within):
                while not self._question.complete(answer, times):
                    chunk = await self._reader.read(65536)
                    if not chunk:
                        raise Gone
                    answer += chunk
        except TimeoutError:
            return len(request), answer, False
        return len(request), answer, True
