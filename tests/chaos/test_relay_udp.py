"""Datagrams through the relay, over real sockets, with either kind of loop."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest

from holdfast.chaos.relay.proxy import Proxy, Wanted
from holdfast.chaos.relay.relay import Relay
from holdfast.chaos.relay.toxic import ApiError, Toxic
from tests.chaos.relay_bench import Clock, fields, until
from tests.chaos.sockets import GRACE, PROBE

pytestmark = pytest.mark.usefixtures("runner")


class Peer(asyncio.DatagramProtocol):
    """One socket, with what it has received and from where."""

    def __init__(self) -> None:
        self.received: asyncio.Queue[tuple[bytes, Any]] = asyncio.Queue()
        self.errors: list[Exception] = []
        self.transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self.received.put_nowait((data, addr))

    def error_received(self, exc: Exception) -> None:
        self.errors.append(exc)

    def send(self, data: bytes, to: Any = None) -> None:
        self.transport.sendto(data, to)

    async def next(self) -> bytes:
        return (await asyncio.wait_for(self.received.get(), GRACE))[0]

    async def source(self) -> Any:
        return (await asyncio.wait_for(self.received.get(), GRACE))[1]

    async def stays_silent(self) -> bool:
        await asyncio.sleep(PROBE)
        return self.received.empty()

    def all(self) -> list[bytes]:
        return [self.received.get_nowait()[0] for _ in range(self.received.qsize())]


class UdpBench:
    def __init__(self, relay: Relay, upstream: Peer) -> None:
        self.relay = relay
        self.upstream = upstream
        self.peers = [upstream]

    @property
    def proxy(self) -> Proxy:
        return self.relay.find("u")

    def toxic(self, type_: str, stream: str = "upstream", toxicity: float = 1, **attributes: Any) -> Toxic:
        return self.proxy.add(fields(type=type_, stream=stream, toxicity=toxicity, attributes=attributes))

    def tally(self, group: str, name: str) -> int:
        return self.proxy.transport.tally()[group][name]

    async def client(self) -> Peer:
        port = int(self.proxy.listen.rpartition(":")[2])
        loop = asyncio.get_running_loop()
        _, peer = await loop.create_datagram_endpoint(Peer, remote_addr=("127.0.0.1", port))
        self.peers.append(peer)
        return peer

    async def sent_all(self, count: int) -> None:
        """Everything has gone one way or the other."""
        await until(lambda: self.tally("upstream", "chunks") + self.tally("upstream", "dropped_chunks") >= count)


@contextlib.asynccontextmanager
async def bench(*, seed: int = 0, idle: float = 60.0, host: str = "127.0.0.1") -> AsyncIterator[UdpBench]:
    loop = asyncio.get_running_loop()
    relay = Relay(seed=seed, udp_idle=idle)
    transport, upstream = await loop.create_datagram_endpoint(Peer, local_addr=("127.0.0.1", 0))
    address = f"{host}:{transport.get_extra_info('sockname')[1]}"
    made = UdpBench(relay, upstream)
    await relay.create(Wanted(name="u", upstream=address, listen="127.0.0.1:0", protocol="udp"))
    try:
        yield made
    finally:
        await relay.close()
        for peer in made.peers:
            peer.transport.close()
        await asyncio.sleep(0)


async def exchange(client: Peer, upstream: Peer, data: bytes) -> Any:
    """There and back; says which address the upstream saw."""
    client.send(data)
    got, source = await asyncio.wait_for(upstream.received.get(), GRACE)
    assert got == data
    upstream.send(b"re: " + data, source)
    assert await client.next() == b"re: " + data
    return source


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_datagrams_pass_both_ways_and_are_counted(host: str) -> None:
    async with bench(host=host) as b:
        client = await b.client()
        await exchange(client, b.upstream, b"hello")
        await exchange(client, b.upstream, b"x" * 60_000)
        assert b.proxy.transport.tally() == {
            "connections": {"opened": 1, "open": 1, "refused": 0, "rebinds": 0},
            "upstream": _traffic(60_005),
            "downstream": _traffic(60_013),
        }


def _traffic(size: int) -> dict[str, int]:
    return {
        "received_bytes": size,
        "bytes": size,
        "chunks": 2,
        "dropped_bytes": 0,
        "dropped_chunks": 0,
        "altered_chunks": 0,
    }


async def test_each_client_is_a_flow_of_its_own() -> None:
    async with bench() as b:
        clients = [await b.client() for _ in range(5)]
        sources = [await exchange(client, b.upstream, b"%d" % at) for at, client in enumerate(clients)]
        assert len(set(sources)) == 5
        assert await exchange(clients[2], b.upstream, b"again") == sources[2]


async def test_idle_flows_are_forgotten_and_come_back() -> None:
    async with bench(idle=0.2) as b:
        client = await b.client()
        await exchange(client, b.upstream, b"one")
        await until(lambda: b.tally("connections", "open") == 0)
        await exchange(client, b.upstream, b"two")
        assert b.tally("connections", "opened") == 2


@pytest.mark.parametrize("stream", ["upstream", "downstream"])
async def test_latency_holds_one_direction(stream: str) -> None:
    async with bench() as b:
        client = await b.client()
        b.toxic("latency", stream, latency=500)
        clock = Clock()
        client.send(b"ping")
        source = await b.upstream.source()
        there = clock()
        b.upstream.send(b"pong", source)
        await client.next()
        back = clock() - there
        slow, fast = (there, back) if stream == "upstream" else (back, there)
        assert slow >= 0.5
        assert fast < 0.5


@pytest.mark.parametrize("ordered", [True, False])
async def test_jitter_reorders_unless_it_is_ordered(ordered: bool) -> None:
    async with bench(seed=1) as b:
        client = await b.client()
        b.toxic("latency", latency=50, jitter=50, ordered=ordered)
        numbers = [b"%02d" % number for number in range(40)]
        for number in numbers:
            client.send(number)
        seen = [await b.upstream.next() for _ in numbers]
        assert sorted(seen) == numbers
        assert (seen == numbers) == ordered


async def test_removing_a_latency_sends_what_is_held() -> None:
    async with bench() as b:
        client = await b.client()
        toxic = b.toxic("latency", latency=60_000)
        client.send(b"held")
        await until(lambda: b.tally("upstream", "received_bytes") == 4)
        b.proxy.update(toxic.name, fields(attributes={"latency": 0}))
        client.send(b"free")
        assert await b.upstream.next() == b"free"  # the other keeps the time that it was given
        b.proxy.remove(toxic)
        assert await b.upstream.next() == b"held"


async def test_bandwidth_paces_and_a_full_queue_loses() -> None:
    async with bench() as b:
        client = await b.client()
        b.toxic("bandwidth", rate=100, queue=10_000)
        clock = Clock()
        for _ in range(40):
            client.send(b"x" * 1000)
        await until(lambda: b.tally("upstream", "received_bytes") == 40_000)
        dropped = b.tally("upstream", "dropped_chunks")
        assert dropped > 0
        for _ in range(40 - dropped):
            await b.upstream.next()
        assert clock() >= (40 - dropped) * 0.01 - 0.001


async def test_a_partition_is_silent_and_heals_without_closing_anything() -> None:
    for type_ in ("timeout", "blackhole"):
        async with bench() as b:
            client = await b.client()
            source = await exchange(client, b.upstream, b"before")
            toxic = b.toxic(type_)
            client.send(b"lost")
            assert await b.upstream.stays_silent()
            b.upstream.send(b"the other way", source)
            assert await client.next() == b"the other way"
            b.proxy.remove(toxic)
            assert await exchange(client, b.upstream, b"after") == source
            assert b.tally("upstream", "dropped_chunks") == 1
            assert client.errors == []


async def test_a_timeout_forgets_a_silent_flow() -> None:
    async with bench() as b:
        client = await b.client()
        await exchange(client, b.upstream, b"before")
        b.toxic("timeout", timeout=100)
        await until(lambda: b.tally("connections", "open") == 0)


async def test_limit_data_makes_a_flow_silent() -> None:
    async with bench() as b:
        client = await b.client()
        b.toxic("limit_data", bytes=10)
        for data in (b"12345", b"67890", b"x"):
            client.send(data)
        await b.sent_all(3)
        await until(lambda: b.upstream.received.qsize() == 2)
        assert await b.upstream.stays_silent() is False
        assert b.upstream.all() == [b"12345", b"67890"]


async def test_loss_is_about_its_rate_and_the_same_with_the_same_seed() -> None:
    lost = []
    for seed in (1, 1, 2):
        async with bench(seed=seed) as b:
            lost.append(await _lost(b, loss_rate=0.3))
    assert 0.3 * 400 - 37 <= len(lost[0]) <= 0.3 * 400 + 37  # four sigma
    assert lost[0] == lost[1] != lost[2]


async def test_correlation_makes_losses_come_together() -> None:
    async with bench(seed=1) as b:
        lost = await _lost(b, loss_rate=0.1, correlation=0.9)
    runs = sum(number - 1 not in lost for number in lost)
    assert len(lost) > 0.1 * 400 + 24
    assert len(lost) / runs > 3  # alone, a run of losses would be 1.1 long


async def _lost(b: UdpBench, **attributes: Any) -> set[int]:
    client = await b.client()
    b.toxic("packet_loss", **attributes)
    for number in range(400):
        client.send(b"%03d" % number)
        if number % 50 == 49:
            await b.sent_all(number + 1)
    await until(lambda: b.upstream.received.qsize() == b.tally("upstream", "chunks"))
    return set(range(400)) - {int(data) for data in b.upstream.all()}


async def test_toxicity_of_a_loss_is_drawn_for_each_datagram() -> None:
    async with bench(seed=1) as b:
        client = await b.client()
        b.toxic("packet_loss", toxicity=0.5, loss_rate=1)
        for _ in range(200):
            client.send(b"x")
            await asyncio.sleep(0)
        await b.sent_all(200)
        assert 72 <= b.tally("upstream", "dropped_chunks") <= 128


async def test_duplicates_come_twice() -> None:
    async with bench() as b:
        client = await b.client()
        b.toxic("duplicate", rate=1)
        client.send(b"twin")
        assert [await b.upstream.next(), await b.upstream.next()] == [b"twin", b"twin"]


async def test_reorder_lets_the_next_overtake() -> None:
    async with bench() as b:
        client = await b.client()
        toxic = b.toxic("reorder", rate=1, delay=100)
        client.send(b"first")
        await until(lambda: b.tally("upstream", "received_bytes") == 5)
        b.proxy.update(toxic.name, fields(attributes={"rate": 0}))
        client.send(b"second")
        assert [await b.upstream.next(), await b.upstream.next()] == [b"second", b"first"]


async def test_corrupt_turns_one_bit() -> None:
    async with bench() as b:
        client = await b.client()
        b.toxic("corrupt", rate=1)
        client.send(bytes(100))
        got = await b.upstream.next()
        assert len(got) == 100
        assert sum(byte.bit_count() for byte in got) == 1


async def test_rebind_changes_the_source_port_and_nothing_else() -> None:
    async with bench() as b:
        client = await b.client()
        sources = [await exchange(client, b.upstream, b"before")]
        for _ in range(3):
            assert b.proxy.rebind() == 1
            sources.append(await exchange(client, b.upstream, b"after"))
        assert len(set(sources)) == 4
        assert b.tally("connections", "rebinds") == 3
        assert b.tally("connections", "opened") == 1


async def test_the_rebind_toxic_does_it_by_itself() -> None:
    async with bench() as b:
        client = await b.client()
        await exchange(client, b.upstream, b"x")
        toxic = b.toxic("rebind", interval=30)
        await until(lambda: b.tally("connections", "rebinds") >= 3)
        b.proxy.remove(toxic)
        await exchange(client, b.upstream, b"y")


async def test_an_absent_upstream_is_swallowed_and_missed_no_more_when_it_comes() -> None:
    async with bench() as b:
        client = await b.client()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as late:
            late.bind(("127.0.0.1", 0))
            port = late.getsockname()[1]
        await b.proxy.change(fields(upstream=f"127.0.0.1:{port}"))
        client = await b.client()
        for _ in range(5):
            client.send(b"nobody")
            await asyncio.sleep(0.01)
        assert client.errors == []
        _, upstream = await asyncio.get_running_loop().create_datagram_endpoint(Peer, local_addr=("127.0.0.1", port))
        b.peers.append(upstream)
        await exchange(client, upstream, b"somebody")


async def test_disable_is_seen_by_a_connected_client_and_enable_takes_the_same_port() -> None:
    async with bench() as b:
        client = await b.client()
        await exchange(client, b.upstream, b"before")
        await b.proxy.stop()
        client.send(b"lost")
        await until(lambda: client.errors)
        await b.proxy.start()
        await exchange(client, b.upstream, b"after")


@pytest.mark.parametrize("upstream", ["rubbish", "127.0.0.1:99999", "no.such.host.invalid:1"])
async def test_an_upstream_that_means_nothing_loses_everything(upstream: str) -> None:
    async with bench() as b:
        await b.proxy.change(fields(upstream=upstream))
        client = await b.client()
        client.send(b"lost")
        await until(lambda: b.tally("connections", "refused") == 1)
        assert b.tally("connections", "open") == 0


@pytest.mark.parametrize("type_", ["slicer", "slow_close", "reset_peer", "refuse"])
async def test_what_makes_no_sense_on_datagrams_is_refused(type_: str) -> None:
    async with bench() as b:
        with pytest.raises(ApiError, match="invalid toxic type"):
            b.toxic(type_)
        assert '"protocol":"udp"' in b.proxy.json()
