"""Faults of a node: stopped, killed, terminated, restarted, or with its clock off.

The receipts come from outside the node, since a node that is dead or stopped can't be asked: /proc tells its state (T:
stopped) and when its process started. Pids are used again, so "gone" means that no process of that pid has the start
time that the node's had. Only the clock is proven by the node itself, by the dates of its answers or its log.

Healing a kill or a term is to start the node again, on its ports and with its settings; a restart is over when it is
put in force. An attached node has no pid here, so faults of its process are never proven.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from holdfast.chaos.faults.clock import Since, clock_of
from holdfast.target.deployment import Node
from holdfast.target.fault import Receipt

TERM_TIMEOUT = 60.0
CLOCK_TOLERANCE = 2.0


def state(pid: int | None) -> str:
    """Return the state letter that /proc shows (R, S, T, Z …); empty when there is no such process."""
    if pid is None:
        return ""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""


def started(pid: int | None) -> int:
    """Return when the process started, in clock ticks since boot, or 0; a pid alone may have been used again."""
    if pid is None:
        return 0
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except (OSError, IndexError, ValueError):
        return 0


@dataclass(frozen=True)
class Stopped:
    """A process under SIGSTOP: /proc shows T until SIGCONT."""

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
    """Wait up to half a second for the state: the kernel stops a process a moment after the signal."""
    for _ in range(50):
        if state(pid()) == wanted:
            return wanted
        await asyncio.sleep(0.01)
    return state(pid())


@dataclass
class Killed:
    """A node killed by SIGKILL; healing starts it again."""

    node: Node
    pid: int | None
    born: int

    @classmethod
    async def put(cls, node: Node) -> Self:
        before = cls(node, node.pid, started(node.pid))
        await before.strike()
        return before

    async def strike(self) -> None:
        """Put the fault in force; what subclasses change."""
        await self.node.kill()

    async def proof(self) -> Receipt:
        """Prove that the process is no longer the one that was there before."""
        gone = started(self.pid) != self.born
        return Receipt(f"{self.node.name}: process {self.pid} is {'gone' if gone else 'still there'}", gone)

    async def heal(self) -> Receipt:
        await self.node.restart()
        return Receipt(f"{self.node.name}: started again as {self.node.pid}", state(self.node.pid) not in ("", "Z"))


class Terminated(Killed):
    """A node asked to end by SIGTERM; it is in force when the node has ended, or TERM_TIMEOUT has passed."""

    async def strike(self) -> None:
        await self.node.term(TERM_TIMEOUT)


class Restarted(Killed):
    """A node killed and started again at once; there is nothing left to heal."""

    async def strike(self) -> None:
        await self.node.restart()

    async def heal(self) -> Receipt:
        return Receipt(f"{self.node.name}: runs as {self.node.pid}", state(self.node.pid) not in ("", "Z"))


@dataclass
class Skewed:
    """A node restarted with its clock off by `seconds`, proven by the dates in its answers or its log."""

    node: Node
    seconds: float
    since: Since

    @classmethod
    async def put(cls, node: Node, seconds: float) -> "Skewed":
        since = Since.now(node)
        await node.restart(clock_offset=f"{seconds:g}")
        return cls(node, seconds, since)

    async def proof(self) -> Receipt:
        return await self._reading(self.seconds)

    async def heal(self) -> Receipt:
        self.since = Since.now(self.node)
        await self.node.restart(clock_offset="0")
        return await self._reading(0.0)

    async def _reading(self, wanted: float) -> Receipt:
        """Compare the node's clock with the offset that it should have."""
        reading = await clock_of(self.node, self.since)
        if reading is None:
            return Receipt(f"{self.node.name}: neither its answers nor the lines of its log are dated", proven=False)
        seen = f"its clock is {reading.most:+.0f} s off by {reading.shown_by}, {wanted:+.0f} s was asked for"
        return Receipt(f"{self.node.name}: {seen}", reading.fits(wanted, CLOCK_TOLERANCE))
