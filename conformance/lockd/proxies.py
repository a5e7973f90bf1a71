"""Partitions between nodes: each node has an HTTP CONNECT proxy of its own for what it sends.

The nodes know each other under names that only these proxies can resolve, so that every pair can be cut in each
direction, while our own calls go to the nodes' real ports. Refusals are counted: without any, the cut was not proven.
"""

import asyncio
import contextlib
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from holdfast.finding import Inconclusive

if TYPE_CHECKING:
    from holdfast.conformance.lockd.client import Lockd

_CHUNK = 1 << 16
_HEAD_LIMIT = 64


class Proxies:
    """One proxy for each node; `cut` holds the ordered pairs between which nothing passes."""

    def __init__(self, lockd: "Lockd") -> None:
        self._lockd = lockd
        self._real: dict[str, tuple[str, int]] = {}
        self._open: dict[tuple[str, str], set[asyncio.StreamWriter]] = {}
        self.cut: set[tuple[str, str]] = set()
        self.refused = 0

    def endpoint(self, node: str) -> str:
        return f"https://{self._name(node)}:{self._real[node][1]}"

    async def stand(self, *nodes: str) -> dict[str, str]:
        """Start them; for each node the URL of its proxy."""
        urls: dict[str, str] = {}
        for node in nodes:
            parts = urlsplit(self._lockd.url(node))
            self._real[node] = (parts.hostname or "127.0.0.1", parts.port or 443)
        bind = self._lockd.context.target.harness["bind"]
        for node in nodes:
            server = await asyncio.start_server(partial(self._serve, node), bind, 0)
            self._lockd.context.stack.callback(server.close)
            urls[node] = f"http://{bind}:{server.sockets[0].getsockname()[1]}"
        self._lockd.context.stack.callback(self._hang_up, list(self._open))
        return urls

    def isolate(self, node: str) -> None:
        """Nothing passes between this node and the others, in either direction; what is open is cut."""
        others = [other for other in self._real if other != node]
        self.cut = {(node, other) for other in others} | {(other, node) for other in others}
        self._hang_up(list(self.cut))

    def heal(self) -> None:
        if self.cut and not self.refused:
            raise Inconclusive("fault not applied: no connection was refused while the nodes were cut off")
        self.cut = set()

    def _hang_up(self, pairs: list[tuple[str, str]]) -> None:
        for pair in pairs:
            for writer in self._open.pop(pair, set()):
                writer.transport.abort()

    @staticmethod
    def _name(node: str) -> str:
        return f"node-{node}.test"

    async def _serve(self, source: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, ValueError):
            target = await self._asked_for(reader)
            pair = (source, target)
            if pair in self.cut or target not in self._real:
                self.refused += 1
                writer.write(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
                await writer.drain()
            else:
                await self._join(pair, reader, writer)
        writer.close()

    async def _asked_for(self, reader: asyncio.StreamReader) -> str:
        """The node that a CONNECT names."""
        request = (await reader.readline()).decode("latin-1").split()
        for _ in range(_HEAD_LIMIT):
            if (await reader.readline()) in (b"\r\n", b""):
                break
        host = request[1].rpartition(":")[0] if len(request) > 1 and request[0] == "CONNECT" else ""
        return next((node for node in self._real if self._name(node) == host), "")

    async def _join(self, pair: tuple[str, str], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far = await asyncio.open_connection(*self._real[pair[1]])
        both = {writer, far}
        self._open.setdefault(pair, set()).update(both)
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        try:
            await asyncio.gather(_pump(reader, far), _pump(far_reader, writer))
        finally:
            self._open.get(pair, set()).difference_update(both)
            far.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while chunk := await reader.read(_CHUNK):
            writer.write(chunk)
            await writer.drain()
    writer.close()
