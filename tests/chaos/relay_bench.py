"""A relay on the test's own loop with one proxy in front of an upstream that the test plays itself."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator
from typing import Any

from holdfast.chaos.relay.effects import Effects
from holdfast.chaos.relay.gojson import read_object
from holdfast.chaos.relay.proxy import Proxy, Wanted
from holdfast.chaos.relay.relay import Relay
from holdfast.chaos.relay.toxic import Toxic
from tests.chaos.sockets import GRACE

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Bench:
    def __init__(self, relay: Relay, port: int) -> None:
        self.relay = relay
        self.upstream_port = port
        self.accepted: asyncio.Queue[Streams] = asyncio.Queue()
        self.writers: list[asyncio.StreamWriter] = []
        self.greeting = b""

    @property
    def proxy(self) -> Proxy:
        return self.relay.find("p")

    @property
    def port(self) -> int:
        return int(self.proxy.listen.rpartition(":")[2])

    def toxic(self, type_: str, stream: str = "upstream", toxicity: float = 1, **attributes: Any) -> Toxic:
        return self.proxy.add(fields(type=type_, stream=stream, toxicity=toxicity, attributes=attributes))

    def update(self, toxic: Toxic, toxicity: float | None = None, **attributes: Any) -> None:
        self.proxy.update(toxic.name, fields(toxicity=toxicity, attributes=attributes))

    def tally(self, group: str, name: str) -> int:
        return self.proxy.transport.tally()[group][name]

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        writer.write(self.greeting)
        await self.accepted.put((reader, writer))

    async def client(self) -> Streams:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        self.writers.append(writer)
        return reader, writer

    async def connection(self) -> tuple[Streams, Streams]:
        """A connection that certainly has its toxics: the relay counts it as open."""
        before = self.tally("connections", "opened")
        client = await self.client()
        upstream = await asyncio.wait_for(self.accepted.get(), GRACE)
        await until(lambda: self.tally("connections", "opened") > before)
        return client, upstream


def fields(**values: Any) -> Any:
    return read_object(json.dumps(values).encode())


@contextlib.asynccontextmanager
async def bench(*, seed: int = 0, effects: Effects | None = None, **wanted: Any) -> AsyncIterator[Bench]:
    relay = Relay(seed=seed, effects=effects)
    made = Bench(relay, 0)
    server = await asyncio.start_server(made.take, "127.0.0.1", 0)
    made.upstream_port = server.sockets[0].getsockname()[1]
    await relay.create(Wanted(name="p", upstream=f"127.0.0.1:{made.upstream_port}", listen="127.0.0.1:0", **wanted))
    try:
        yield made
    finally:
        await relay.close()
        server.close()
        for writer in made.writers:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()


async def until(held: Any) -> None:
    async with asyncio.timeout(GRACE):
        while not held():  # noqa: ASYNC110 - what is waited for happens in the kernel
            await asyncio.sleep(0.005)


class Clock:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def __call__(self) -> float:
        return time.monotonic() - self._began
