"""The runner's side of a relay process: start it, know when it answers, end it."""

import asyncio
from typing import Self

from holdfast.fixtures.launcher import Command, Guardian, LaunchKind, Process, ready

PROCESS = "holdfast.chaos.relay.process:main"
START_DEADLINE = 10.0
CLOSE_DEADLINE = 2.0
SERVES = "relay: API "


class RelayServer:
    """A relay as a process of the guardian; its API is at `url`."""

    def __init__(self, process: Process, port: int) -> None:
        self.process = process
        self.port = port

    @classmethod
    async def start(
        cls, guardian: Guardian, name: str, port: int, *, seed: int = 0, launcher: LaunchKind = "fork"
    ) -> Self:
        args = ["--host", "127.0.0.1", "--port", str(port), "--seed", str(seed), "--proxy-metrics"]
        command = Command(python=PROCESS, args=args)
        process = await guardian.spawn(command, name=name, launcher=launcher)
        server = cls(process, port)
        await ready(process, server.answers, START_DEADLINE, what="its API")
        return server

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def answers(self) -> bool:
        if not any(line.startswith(SERVES) for line in self.process.tail()):
            return False  # another process may answer on that port; ours has not said yet that it listens
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(b"GET /version HTTP/1.1\r\nHost: relay\r\nConnection: close\r\n\r\n")
            return (await reader.read()).startswith(b"HTTP/1.1 200 ")
        finally:
            writer.close()

    async def close(self) -> None:
        """End the process, and with it every connection that goes through it."""
        await self.process.end(CLOSE_DEADLINE)
