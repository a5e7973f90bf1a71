"""CONNECT proxies, one for each node, that cut nodes off from each other, by ordered pair."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class Switchboard:
    """Nodes call each other by names that only the proxies can resolve, so every call between them passes here."""

    def __init__(self) -> None:
        self.ports: dict[str, int] = {}
        self.cut: set[tuple[str, str]] = set()
        self._open: dict[tuple[str, str], set[asyncio.StreamWriter]] = {}
        self._servers: list[asyncio.Server] = []
        self._writers: set[asyncio.StreamWriter] = set()

    async def proxy_for(self, node: str) -> str:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self._writers.add(writer)
            with suppress(OSError, asyncio.IncompleteReadError, ValueError):
                await self._connect(node, reader, writer)
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        self._servers.append(server)
        return f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"

    def isolate(self, node: str) -> None:
        """Cuts a node off in both directions: closes its open connections and refuses new ones."""
        for other in self.ports:
            if other != node:
                self.cut |= {(node, other), (other, node)}
        for pair in self.cut:
            for writer in self._open.pop(pair, set()):
                writer.transport.abort()

    def heal(self) -> None:
        self.cut.clear()

    async def _connect(self, source: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        name = head.split()[1].decode().partition(":")[0]
        if (source, name) in self.cut:
            writer.write(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
            return
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.ports[name])
        self._writers.add(far_writer)
        self._open.setdefault((source, name), set()).add(writer)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))

    async def close(self) -> None:
        for server in self._servers:
            server.close()
        for writer in self._writers:
            writer.transport.abort()
        await asyncio.sleep(0.05)  # aborted sockets close on the loop


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while chunk := await reader.read(65536):
            writer.write(chunk)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def switchboard() -> AsyncIterator[Switchboard]:
    made = Switchboard()
    try:
        yield made
    finally:
        await made.close()
