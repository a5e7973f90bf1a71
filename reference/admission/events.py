"""Structured events (spec 4): one JSON object a line on standard output. Tokens never appear in them."""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, BinaryIO
from urllib.parse import urlsplit

from holdfast.reference.shared.jsonlog import JsonLog

if TYPE_CHECKING:
    from holdfast.reference.admission.node import Node

AUDIT_QUEUE = 10_000
AUDIT_RETRY_SECONDS = 0.5


class Events(JsonLog):
    def __init__(self, node: "Node", stream: BinaryIO) -> None:
        super().__init__(node.settings.node, stream)
        self._settings = node.settings
        self.audit = Audit(node.settings.audit_sink) if node.settings.audit_sink else None

    def wall_clock(self) -> float:
        """Returns the time of this node's own clock, in seconds, for logs and dates only; decisions use Redis time."""
        return super().wall_clock() + self._settings.clock_offset

    def write(self, line: bytes) -> None:
        """Writes one line, and hands a copy to the audit sink if there is one."""
        super().write(line)
        if self.audit is not None:
            self.audit.copy(line)


class Audit:
    """Copies events to a durable sink, outside the request path: a sink that stalls only fills the queue.

    The sink acknowledges each line with one byte. When the queue is full, the oldest line is dropped.
    """

    def __init__(self, url: str) -> None:
        address = urlsplit(url)
        self._host, self._port = address.hostname or "", address.port or 0
        self.queue: asyncio.Queue[bytes] = asyncio.Queue(AUDIT_QUEUE)

    def copy(self, line: bytes) -> None:
        if self.queue.full():
            self.queue.get_nowait()
            self.queue.task_done()
        self.queue.put_nowait(line)

    async def run(self) -> None:
        while True:
            with suppress(OSError, EOFError):
                await self._feed()
            await asyncio.sleep(AUDIT_RETRY_SECONDS)

    async def _feed(self) -> None:
        reader, writer = await asyncio.open_connection(self._host, self._port)
        try:
            while True:
                line = await self.queue.get()
                writer.write(line)
                await reader.readexactly(1)
                self.queue.task_done()
        finally:
            writer.close()
