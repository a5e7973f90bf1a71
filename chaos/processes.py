"""Faults of a node: stopped, killed, restarted or off its clock.

Their receipts are what /proc says about the process, and what an answer is dated.
"""

import asyncio
import email.utils
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from holdfast.chaos.linkfaults import HEALED
from holdfast.deployment import Node
from holdfast.fault import Receipt

TERM_PATIENCE = 60.0
CLOCK_TOLERANCE = 2.0


def state(pid: int | None) -> str:
    """The letter that /proc shows (R, S, T, Z …); empty when there is no such process."""
    if pid is None:
        return ""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""


def started(pid: int | None) -> int:
    """When it started, in clock ticks since boot; a pid alone may have been used again."""
    if pid is None:
        return 0
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except (OSError, IndexError, ValueError):
        return 0


@dataclass(frozen=True)
class Stopped:
    """SIGSTOP: /proc shows T until SIGCONT."""

    name: str
    resume: Callable[[], Awaitable[None]]
    pid: Callable[[], int | None]

    @classmethod
    async def put(
        cls,
        name: str,
        pause: Callable[[], Awaitable[None]],
        resume: Callable[[], Awaitable[None]],
        pid: Callable[[], int | None],
    ) -> "Stopped":
        await pause()
        return cls(name, resume, pid)

    async def proof(self) -> Receipt:
        seen = await _state_becomes(self.pid, "T")
        return Receipt(f"{self.name}: /proc shows {seen or 'no process'} (T is stopped)", seen == "T")

    async def heal(self) -> Receipt:
        await self.resume()
        seen = state(self.pid())
        return Receipt(f"{self.name}: continued, /proc shows {seen or 'no process'}", seen not in ("", "T"))


async def _state_becomes(pid: Callable[[], int | None], wanted: str) -> str:
    """A stop is carried out at the process's next step into the kernel, a moment after the signal."""
    for _ in range(50):
        if state(pid()) == wanted:
            return wanted
        await asyncio.sleep(0.01)
    return state(pid())


@dataclass
class Killed:
    """SIGKILL; healing is to start the node again."""

    node: Node
    pid: int | None
    born: int

    @classmethod
    async def put(cls, node: Node) -> Self:
        before = cls(node, node.pid, started(node.pid))
        await before.strike()
        return before

    async def strike(self) -> None:
        await self.node.kill()

    async def proof(self) -> Receipt:
        gone = started(self.pid) != self.born
        return Receipt(f"{self.node.name}: process {self.pid} is {'gone' if gone else 'still there'}", gone)

    async def heal(self) -> Receipt:
        await self.node.restart()
        return Receipt(f"{self.node.name}: started again as {self.node.pid}", state(self.node.pid) not in ("", "Z"))


class Terminated(Killed):
    async def strike(self) -> None:
        await self.node.term(TERM_PATIENCE)


class Restarted(Killed):
    """Gone and back at once."""

    async def strike(self) -> None:
        await self.node.restart()

    async def heal(self) -> Receipt:
        return Receipt(f"{self.node.name}: runs as {self.node.pid}", state(self.node.pid) not in ("", "Z"))


@dataclass
class Skewed:
    """A node restarted with its clock so many seconds off; what its answers are dated tells."""

    node: Node
    seconds: float

    @classmethod
    async def put(cls, node: Node, seconds: float) -> "Skewed":
        await node.restart(clock_offset=f"{seconds:g}")
        return cls(node, seconds)

    async def proof(self) -> Receipt:
        return await self._reading(self.seconds)

    async def heal(self) -> Receipt:
        await self.node.restart(clock_offset="0")
        return await self._reading(0.0)

    async def _reading(self, wanted: float) -> Receipt:
        off = await clock_of(self.node.urls["http"])
        if off is None:
            return Receipt(f"{self.node.name}: its answers are not dated", proven=False)
        fits = abs(off - wanted) <= CLOCK_TOLERANCE
        return Receipt(f"{self.node.name}: its clock is {off:+.0f} s off, {wanted:+.0f} s was asked for", fits)


async def clock_of(url: str) -> float | None:
    """How far the clock that dates a node's answers is ahead of ours, in whole seconds."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    try:
        writer.write(b"GET /health HTTP/1.1\r\nHost: canary\r\nConnection: close\r\n\r\n")
        async with asyncio.timeout(HEALED):
            head = (await reader.read()).partition(b"\r\n\r\n")[0].decode("latin-1")
    finally:
        writer.close()
    for line in head.splitlines():
        name, _, value = line.partition(":")
        if name.lower() == "date":
            return email.utils.parsedate_to_datetime(value.strip()).timestamp() - time.time()
    return None
