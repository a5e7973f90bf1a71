"""The Toxiproxy client: several servers, deadlines, updates, and errors that say what happened."""

import asyncio
import time

import pytest

from holdfast.chaos.relay.server import RelayServer
from holdfast.chaos.toxiproxy import Toxiproxy, ToxiproxyError
from holdfast.fixtures.launcher import Guardian
from holdfast.fixtures.ports import PortPool

SOON = 5.0


async def relay(guardian: Guardian, ports: PortPool, name: str = "relay") -> Toxiproxy:
    if name == "relay":
        await guardian.attach()
    return Toxiproxy((await RelayServer.start(guardian, name, ports.take())).url)


async def test_a_proxy_with_toxics_updated_removed_and_healed(guardian: Guardian, ports: PortPool) -> None:
    server = await relay(guardian, ports)
    proxy = await server.create("a/b c", "127.0.0.1:9")
    other = await server.create("plain", "127.0.0.1:9")
    assert await server.version() == "2.12.0"
    assert sorted(await server.proxies()) == ["a/b c", "plain"]

    name = await other.add("latency", "upstream", latency=100)
    assert (await other.update_toxic(name, jitter=7))["attributes"] == {"latency": 100, "jitter": 7}
    await other.disable()
    await other.heal()
    assert await other.toxics() == []
    assert (await server.find("plain")).enabled
    await other.destroy()
    assert list(await server.proxies()) == ["a/b c"]
    assert proxy.port > 0
    await server.close()


async def test_two_servers_in_one_process(guardian: Guardian, ports: PortPool) -> None:
    first, second = await relay(guardian, ports), await relay(guardian, ports, "second")
    await asyncio.gather(first.create("here", "127.0.0.1:9"), second.create("there", "127.0.0.1:9"))
    assert (list(await first.proxies()), list(await second.proxies())) == (["here"], ["there"])
    await first.reset()
    await first.close()
    await second.close()


async def test_what_a_server_refuses_is_told_in_its_words(guardian: Guardian, ports: PortPool) -> None:
    server = await relay(guardian, ports)
    proxy = await server.create("p", "127.0.0.1:9")
    with pytest.raises(ToxiproxyError, match=r"POST .*/proxies: 409 proxy already exists"):
        await server.create("p", "127.0.0.1:9")
    with pytest.raises(ToxiproxyError, match="400 invalid toxic type"):
        await proxy.add("hail")
    with pytest.raises(ToxiproxyError, match="404 toxic not found"):
        await proxy.remove("nothing")
    with pytest.raises(ToxiproxyError, match="500 listen tcp"):
        await server.create("q", "127.0.0.1:9", proxy.listen)
    await server.close()


async def test_a_server_that_is_gone_is_one_clear_error(guardian: Guardian, ports: PortPool) -> None:
    await guardian.attach()
    process = await RelayServer.start(guardian, "relay", ports.take())
    server = Toxiproxy(process.url)
    proxy = await server.create("p", "127.0.0.1:9")
    await process.process.signal(9)
    await process.process.wait(SOON)
    with pytest.raises(ToxiproxyError, match=f"nothing answers at {process.url}: .*[Cc]onnection"):
        await proxy.add("latency", latency=1)
    await server.close()


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"], ids=["silent", "stops"])
async def test_a_wedged_server_is_given_up_by_the_deadline(answer: bytes) -> None:
    taken: list[asyncio.StreamWriter] = []

    async def take(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        taken.append(writer)
        writer.write(answer)

    wedged = await asyncio.start_server(take, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{wedged.sockets[0].getsockname()[1]}"
    server, began = Toxiproxy(url, deadline=0.3), time.monotonic()
    with pytest.raises(ToxiproxyError, match=url):
        await server.version()
    assert time.monotonic() - began < SOON
    for writer in taken:
        writer.close()
    wedged.close()
    await server.close()
