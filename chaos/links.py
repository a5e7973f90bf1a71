"""The runner's side of a link process: open links, put faults on them, read their counters."""

import asyncio
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from holdfast.deployment import LinkCounters
from holdfast.finding import PartError
from holdfast.fixtures.channel import Channel, Message
from holdfast.fixtures.launcher import Command, Guardian, LaunchKind, Process, ready

START_DEADLINE = 10.0
CLOSE_DEADLINE = 2.0
LONGEST_SOCKET_PATH = 100  # the system's limit is 107 or 103 bytes


class LinksGoneError(PartError):
    """The link process has left, and every connection through it is broken."""


class LinkServer:
    def __init__(self, process: Process, control: socket.socket) -> None:
        self.process = process
        self._channel = Channel(control, self._gone)
        self._channel.attach()

    @classmethod
    async def start(cls, guardian: Guardian, name: str, launcher: LaunchKind = "fork") -> Self:
        control = guardian.folder / f"{name}.sock"
        if len(str(control).encode()) > LONGEST_SOCKET_PATH:
            raise ValueError(f"{control} is too long for a unix socket; set TMPDIR to a shorter folder")
        command = Command(python="holdfast.chaos.linkserver:main", args=[str(control)])
        process = await guardian.spawn(command, name=name, launcher=launcher)
        connection = _Connection(control)
        await ready(process, connection.attempt, START_DEADLINE, what="its control socket")
        return cls(process, connection.sock)

    async def open(
        self, name: str, upstream_host: str, upstream_port: int, listen_port: int = 0, *, seed: int = 0
    ) -> "RemoteLink":
        """Listen on `listen_port` (0: any free one); `seed` starts the link's draws of jitter."""
        reply = await self.request(
            "open",
            name,
            upstream_host=upstream_host,
            upstream_port=upstream_port,
            listen_port=listen_port,
            seed=seed,
        )
        return RemoteLink(self, name, reply["port"])

    async def request(self, op: str, link: str, **fields: str | float) -> Message:
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
    """A link in the link process; every verb returns once it is in force there."""

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

    async def counters(self) -> LinkCounters:
        reply = await self.server.request("counters", self.name)
        return LinkCounters(**reply["counters"])

    async def close(self) -> None:
        await self.server.request("close", self.name)


class _Connection:
    """The control connection, tried until it stands; it is the only one the process will take."""

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
