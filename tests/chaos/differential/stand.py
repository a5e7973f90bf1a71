"""One proxy of a subject between a client and an upstream, both played by a row of the table."""

import asyncio
import contextlib
import json
import socket
import struct
import time
from collections.abc import AsyncIterator
from typing import Any

from tests.chaos.differential.servers import Answer, Subject

LONG = 3.0  # longer than anything that a row waits for on purpose
SHORT = 0.25  # how long we look at something that must not happen
SETTLE = 0.05  # for connections that were accepted just now, and not handed to us yet

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Side:
    """One end of a connection, with what it has seen."""

    def __init__(self, streams: Streams) -> None:
        self.reader, self.writer = streams

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def next(self, within: float = LONG) -> str:
        """What comes next: the bytes that are there, an end, a reset, or nothing."""
        try:
            async with asyncio.timeout(within):
                data = await self.reader.read(1 << 20)
        except TimeoutError:
            return "nothing"
        except ConnectionError:
            return "reset"
        return data.decode() if data else "end"

    async def all(self, size: int) -> str:
        """This number of bytes, or fewer and how it ended."""
        seen = ""
        while len(seen) < size:
            what = await self.next()
            seen += what
            if what in ("end", "reset", "nothing"):
                break
        return seen

    def abort(self) -> None:
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


class Stand:
    def __init__(self, subject: Subject, name: str) -> None:
        self.subject = subject
        self.name = name
        self.port = 0
        self.path = f"/proxies/{name}"
        self._over = False
        self._accepted: asyncio.Queue[Streams] = asyncio.Queue()
        self._writers: list[asyncio.StreamWriter] = []

    async def api(self, method: str, path: str = "", **body: Any) -> Answer:
        return await self.subject.call(method, self.path + path, json.dumps(body) if body else "")

    async def toxic(
        self, type_: str, stream: str = "upstream", toxicity: float = 1, name: str = "t", **at: Any
    ) -> None:
        body = {"type": type_, "stream": stream, "toxicity": toxicity, "name": name, "attributes": at}
        assert (await self.api("POST", "/toxics", **body)).status == 200

    async def update(self, name: str = "t", **attributes: Any) -> None:
        assert (await self.api("PATCH", f"/toxics/{name}", attributes=attributes)).status == 200

    async def remove(self, name: str = "t") -> None:
        assert (await self.api("DELETE", f"/toxics/{name}")).status == 204

    async def connect(self) -> Side:
        streams = await asyncio.open_connection("127.0.0.1", self.port)
        self._writers.append(streams[1])
        return Side(streams)

    async def upstream(self) -> Side:
        return Side(await asyncio.wait_for(self._accepted.get(), LONG))

    async def pair(self, *, linked: bool = False) -> tuple[Side, Side]:
        """A connection; `linked`: a byte has come back, so that a toxic added now certainly finds it live."""
        client, upstream = await self.connect(), await self.upstream()
        if linked:
            await client.send(b"?")
            assert await upstream.next() == "?"
            await upstream.send(b"!")
            assert await client.next() == "!"
        return client, upstream

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._over:
            writer.transport.abort()
        self._writers.append(writer)
        await self._accepted.put((reader, writer))

    async def close(self) -> None:
        self._over = True
        for writer in self._writers:
            writer.transport.abort()
        await asyncio.sleep(SETTLE)


@contextlib.asynccontextmanager
async def stand(subject: Subject, name: str) -> AsyncIterator[Stand]:
    made = Stand(subject, name)
    server = await asyncio.start_server(made.take, "127.0.0.1", 0)
    upstream = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    body = {"name": name, "listen": "127.0.0.1:0", "upstream": upstream}
    try:
        answer = await subject.call("POST", "/proxies", json.dumps(body))
        made.port = int(json.loads(answer.body)["listen"].rpartition(":")[2])
        yield made
    finally:
        await subject.call("DELETE", made.path)
        server.close()
        await made.close()


class Clock:
    def __init__(self) -> None:
        self.began = time.monotonic()

    def __call__(self) -> float:
        return time.monotonic() - self.began
