"""QUIC through the relay: what UDP faults are for."""

import asyncio
import contextlib
import importlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.chaos.relay.proxy import Proxy, Wanted
from holdfast.chaos.relay.relay import Relay
from holdfast.fixtures.certs import CA, CERTIFICATE, KEY, make_certificates
from tests.chaos.relay_bench import fields

pytest.importorskip("aioquic", reason="aioquic speaks QUIC here; install it to run these tests")

IDLE = 60.0
GRACE = 20.0
PARTITION = 8.0
LATE = 0.5
ALPN = ["echo"]


class Echo:
    """A client of an echo server, with a proxy in between."""

    def __init__(self, client: Any, proxy: Proxy) -> None:
        self.client = client
        self.proxy = proxy

    async def ask(self, data: bytes) -> bytes:
        reader, writer = await self.client.create_stream()
        writer.write(data)
        writer.write_eof()
        return bytes(await asyncio.wait_for(reader.read(), GRACE + PARTITION))

    def tally(self, group: str, name: str) -> int:
        return self.proxy.transport.tally()[group][name]


@contextlib.asynccontextmanager
async def echo(folder: Path, seed: int = 1) -> AsyncIterator[Echo]:
    quic: Any = importlib.import_module("aioquic.asyncio")
    configuration: Any = importlib.import_module("aioquic.quic.configuration").QuicConfiguration
    make_certificates(folder)
    theirs = configuration(is_client=False, alpn_protocols=ALPN, idle_timeout=IDLE)
    theirs.load_cert_chain(folder / CERTIFICATE, folder / KEY)
    ours = configuration(is_client=True, alpn_protocols=ALPN, idle_timeout=IDLE, server_name="localhost")
    ours.load_verify_locations(str(folder / CA))
    answers: set[asyncio.Task[None]] = set()

    def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers.add(asyncio.get_running_loop().create_task(_answer(reader, writer)))

    server = await quic.serve("127.0.0.1", 0, configuration=theirs, stream_handler=answer)
    port = server._transport.get_extra_info("sockname")[1]
    relay = Relay(seed=seed)
    proxy = await relay.create(Wanted(name="q", upstream=f"127.0.0.1:{port}", listen="127.0.0.1:0", protocol="udp"))
    try:
        listen = int(proxy.listen.rpartition(":")[2])
        async with quic.connect("127.0.0.1", listen, configuration=ours) as client:
            yield Echo(client, proxy)
    finally:
        server.close()
        await relay.close()
        await asyncio.gather(*answers, return_exceptions=True)
        await asyncio.sleep(0)


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(await reader.read())
    writer.write_eof()


async def test_ten_rebinds_are_survived(tmp_path: Path) -> None:
    async with echo(tmp_path) as e:
        for number in range(10):
            assert e.proxy.rebind() == 1
            assert await e.ask(b"%d" % number) == b"%d" % number
        assert e.tally("connections", "rebinds") == 10
        assert e.tally("connections", "opened") == 1


async def test_a_silent_client_is_not_found_after_a_rebind_until_it_speaks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As behind a real NAT: the server knows the old port only, and a client that waits has nothing to send."""

    async def late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        data = await reader.read()
        await asyncio.sleep(LATE)
        writer.write(data)
        writer.write_eof()

    monkeypatch.setattr("tests.chaos.test_relay_quic._answer", late)
    async with echo(tmp_path) as e:
        asking = asyncio.ensure_future(e.ask(b"late"))
        await asyncio.sleep(LATE / 2)  # the question is acknowledged by now
        e.proxy.rebind()
        await asyncio.wait([asking], timeout=4 * LATE)
        assert not asking.done()
        await asyncio.wait_for(e.client.ping(), GRACE)
        assert await asking == b"late"


async def test_five_per_cent_loss_is_survived(tmp_path: Path) -> None:
    async with echo(tmp_path) as e:
        for stream in ("upstream", "downstream"):
            e.proxy.add(fields(type="packet_loss", stream=stream, attributes={"loss_rate": 0.05}))
        for number in range(5):
            data = b"%d" % number * 20_000
            assert await e.ask(data) == data
        assert e.tally("upstream", "dropped_chunks") > 0
        assert e.tally("downstream", "dropped_chunks") > 0


async def test_a_partition_of_eight_seconds_is_survived(tmp_path: Path) -> None:
    async with echo(tmp_path) as e:
        assert await e.ask(b"before") == b"before"
        toxics = [e.proxy.add(fields(type="blackhole", stream=stream)) for stream in ("upstream", "downstream")]
        pinging = asyncio.ensure_future(e.client.ping())
        asking = asyncio.ensure_future(e.ask(b"during"))
        await asyncio.wait([asking, pinging], timeout=PARTITION)
        assert not asking.done()
        assert not pinging.done()
        assert e.tally("upstream", "dropped_chunks") > 0
        for toxic in toxics:
            e.proxy.remove(toxic)
        assert await asking == b"during"
        await asyncio.wait_for(pinging, GRACE)
