"""The runner's side of a link process: open links, put faults on them, read their counters.

One `LinkServer` per deployment owns the process and the only control connection. The process ends with that connection,
so `close` closes it and only then waits for the process. Every verb of a `RemoteLink` is one request, and returns once
the fault is in force in the process.

If the process ends by itself, every pending and later request raises `LinksGoneError`, a HarnessError: it is our own
failure, and the target is not judged by what it did without its links.
"""

import asyncio
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from holdfast.check.finding import HarnessError
from holdfast.fixtures.channel import Channel, Message
from holdfast.fixtures.launcher import Command, Guardian, LaunchKind, Process, ready
from holdfast.target.deployment import LinkCounters

START_DEADLINE = 10.0
CLOSE_DEADLINE = 2.0
LONGEST_SOCKET_PATH = 100  # the system's limit is 107 or 103 bytes


class LinksGoneError(HarnessError):
    """The link process has ended, and every connection through it is broken."""


class LinkServer:
    def __init__(self, process: Process, control: socket.socket, notes: Path) -> None:
        self.process = process
        self.notes = notes
        self._channel = Channel(control, self._gone)
        self._channel.attach()

    @classmethod
    async def start(cls, guardian: Guardian, name: str, launcher: LaunchKind = "fork") -> Self:
        control, notes = guardian.folder / f"{name}.sock", guardian.folder / f"{name}-tap.jsonl"
        if len(str(control).encode()) > LONGEST_SOCKET_PATH:
            raise ValueError(f"{control} is too long for a unix socket; set TMPDIR to a folder with a shorter path")
        command = Command(python="holdfast.chaos.links.process:main", args=[str(control), str(notes)])
        process = await guardian.spawn(command, name=name, launcher=launcher)
        connection = _Connection(control)
        await ready(process, connection.attempt, START_DEADLINE, what="its control socket")
        return cls(process, connection.sock, notes)

    async def open(
        self, name: str, upstream_host: str, upstream_port: int, listen_port: int = 0, *, tap: bool = False
    ) -> "RemoteLink":
        """Open a link that listens on `listen_port` (0: any free one); return once it listens.

        With `tap` everything that passes is noted in the file `notes`.
        """
        reply = await self.request(
            "open", name, upstream_host=upstream_host, upstream_port=upstream_port, listen_port=listen_port, tap=tap
        )
        return RemoteLink(self, name, reply["port"])

    async def request(self, op: str, link: str, **fields: Any) -> Message:
        return await self._channel.request(op, {"link": link, **fields})

    async def trouble(self) -> str:
        return str(self._gone()) if self.process.returncode is not None else ""

    async def close(self) -> None:
        """End the process; it resets whatever is still open."""
        self._channel.close()
        await self.process.gone_by(CLOSE_DEADLINE)

    def _gone(self) -> LinksGoneError:
        words = "\n".join(["", *self.process.tail()])
        return LinksGoneError(f"the link process {self.process.name} (pid {self.process.pid}) has ended{words}")


@dataclass(frozen=True)
class RemoteLink:
    """A link in the link process."""

    server: LinkServer
    name: str
    port: int

    async def delay(self, seconds: float, jitter: float = 0.0, direction: str = "both") -> None:
        await self.server.request("delay", self.name, seconds=seconds, jitter=jitter, direction=direction)

    async def stall(self, direction: str = "both") -> None:
        await self.server.request("stall", self.name, direction=direction)

    async def refuse(self) -> None:
        await self.server.request("refuse", self.name)

    async def cut(self) -> None:
        await self.server.request("cut", self.name)

    async def lead_to(self, host: str, port: int) -> None:
        await self.server.request("lead_to", self.name, host=host, port=port)

    async def heal(self) -> None:
        await self.server.request("heal", self.name)

    async def rewrite(self, addresses: Mapping[str, str]) -> None:
        """Replace addresses (`host:port` by `host:port`) in what comes down a tapped link."""
        await self.server.request("rewrite", self.name, addresses=dict(addresses))

    async def counters(self) -> LinkCounters:
        reply = await self.server.request("counters", self.name)
        return LinkCounters(**reply["counters"])

    async def close(self) -> None:
        await self.server.request("close", self.name)


class _Connection:
    """The control connection, tried until it is made, and made once: the process ends when it closes."""

    def __init__(self, path: Path) -> None:
        self.sock: socket.socket
        self._path = path

    async def attempt(self) -> bool:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.setblocking(False)
        try:
            await asyncio.get_running_loop().sock_connect(sock, str(self._path))
        except BaseException:
            sock.close()
            raise
        self.sock = sock
        return True
