"""Structured events (spec 4): one JSON object a line on standard output. Tokens never appear in them."""

import asyncio
import json
import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from holdfast.reference.admission.node import Node

AUDIT_QUEUE = 10_000
AUDIT_RETRY_SECONDS = 0.5


class Events:
    def __init__(self, node: "Node", stream: BinaryIO) -> None:
        self._settings = node.settings
        self._stream = stream
        self._node_name = node.settings.node
        self.audit = Audit(node.settings.audit_sink) if node.settings.audit_sink else None

    def wall_clock(self) -> float:
        """This node's own idea of the time, in seconds; nothing but logs and health goes by it."""
        return time.time() + self._settings.clock_offset

    def emit(self, event: str, **fields: Any) -> None:
        moment = datetime.fromtimestamp(self.wall_clock(), UTC).isoformat(timespec="milliseconds")
        record = {"event": event, "time": moment, "node": self._node_name, **fields}
        line = json.dumps(record).encode() + b"\n"
        self._write(line)
        if self.audit is not None:
            self.audit.copy(line)

    def log(self, level: str, message: str) -> None:
        """What is no event of the spec: for the operator of this node."""
        self.emit("log", level=level, message=message)

    def _write(self, line: bytes) -> None:
        self._stream.write(line)
        self._stream.flush()


class Audit:
    """Copies events to a durable sink, outside the request path: a sink that stalls only fills the queue."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or 0
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
