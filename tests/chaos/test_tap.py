"""The tap between real clients and a real Valkey: who said what, replies, scripts, transactions, pushes, Sentinels."""

import asyncio
import contextlib
import json
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from holdfast.chaos.links.client import LinkServer, RemoteLink
from holdfast.fixtures.launcher import Command, Guardian
from holdfast.fixtures.ports import PortPool
from holdfast.fixtures.redis import RedisServer
from holdfast.fixtures.stores import StoreSet
from holdfast.fixtures.tap import NotesReader
from holdfast.target.store_section import StorePlan
from tests.fixtures.waiting import until_async

MASTER = "orders"
SCRIPT = "-- claim a job\nreturn redis.call('INCR', KEYS[1])"


class Tapped:
    """Nodes a, b and c, each with a tapped link to the same server."""

    def __init__(self, server: RedisServer, host: LinkServer, links: dict[str, RemoteLink]) -> None:
        self.server = server
        self.links = links
        self.log = NotesReader(host.notes, lambda: server.port, lambda: [host.process.pid])

    def client(self, node: str, **more: Any) -> Redis:
        return Redis(port=self.links[node].port, retry=Retry(NoBackoff(), 0), decode_responses=True, **more)

    async def names(self, node: str) -> list[str]:
        """The commands of a node, without what clients say when they connect.

        Notes are in the order of events, so once a mark that was sent now is noted, everything before it is.
        """
        mark = uuid.uuid4().hex
        async with self.client("c") as client:
            await client.echo(mark)

        async def noted() -> bool:
            return any(command.words[-1] == mark for command in self.log.commands())

        await until_async(noted)
        said = [command for command in self.log.commands() if command.node == node]
        return [command.name for command in said if command.name not in ("HELLO", "CLIENT", "SELECT", "ECHO")]


@asynccontextmanager
async def tapped(guardian: Guardian, ports: PortPool) -> AsyncIterator[Tapped]:
    await guardian.attach()
    server = await RedisServer.start(guardian, ports, "redis")
    host = await LinkServer.start(guardian, "links")
    links = {node: await host.open(f"{node}-redis", "127.0.0.1", server.port, tap=True) for node in "abc"}
    try:
        yield Tapped(server, host, links)
    finally:
        await host.close()
        await server.close()


async def test_commands_of_three_nodes_are_told_apart(guardian: Guardian, ports: PortPool) -> None:
    async with tapped(guardian, ports) as tap:
        clients = {node: tap.client(node) for node in "abc"}
        await clients["a"].set("lock", "token-a", nx=True, px=30_000)
        await clients["b"].set("lock", "token-b", nx=True, px=30_000)
        await clients["c"].get("lock")
        assert await tap.names("a") == ["SET"]
        assert await tap.names("b") == ["SET"]
        assert await tap.names("c") == ["GET"]
        won, lost = (command for command in tap.log.commands() if command.name == "SET")
        assert won.words[:3] == ("SET", "lock", "token-a")
        assert set(won.words[3:]) == {"PX", "30000", "NX"}
        assert (won.reply, lost.reply) == ("OK", None)
        assert won.replied_at is not None
        assert won.at <= won.replied_at <= time.monotonic()
        for client in clients.values():
            await client.aclose()


async def test_transactions_and_scripts_are_known(guardian: Guardian, ports: PortPool) -> None:
    async with tapped(guardian, ports) as tap:
        client = tap.client("a")
        async with client.pipeline(transaction=True) as pipeline:
            pipeline.set("x", 1)
            pipeline.incr("x")
            await pipeline.execute()
        claim = client.register_script(SCRIPT)
        await claim(keys=["jobs"])
        await claim(keys=["jobs"])
        await tap.names("a")
        commands = tap.log.commands()
        inside = [command for command in commands if command.transaction is not None]
        assert [command.name for command in inside] == ["MULTI", "SET", "INCRBY", "EXEC"]
        assert {command.transaction for command in inside} == {1}
        assert inside[-1].reply == ["OK", 2]
        run = [command for command in commands if command.name == "EVALSHA" and command.reply in (1, 2)]
        assert len(run) == 2
        assert tap.log.scripts()[run[0].script].startswith("-- claim a job")
        await client.aclose()


@pytest.mark.parametrize("protocol", [2, 3])
async def test_pushes_are_no_replies(guardian: Guardian, ports: PortPool, protocol: int) -> None:
    async with tapped(guardian, ports) as tap:
        listener, speaker = tap.client("a", protocol=protocol), tap.client("b", protocol=protocol)
        async with listener.pubsub() as channel:
            await channel.subscribe("news")
            await channel.get_message(timeout=2)
            assert await speaker.publish("news", "hello") == 1
            assert (await channel.get_message(timeout=2) or {})["data"] == "hello"
        await tap.names("b")
        assert ("message", "news", "hello") in [pushed.words for pushed in tap.log.pushes() if pushed.node == "a"]
        (published,) = [command for command in tap.log.commands() if command.name == "PUBLISH"]
        assert (published.node, published.reply) == ("b", 1)
        await listener.aclose()
        await speaker.aclose()


async def test_what_a_stall_holds_back_is_noted_when_it_passes(guardian: Guardian, ports: PortPool) -> None:
    async with tapped(guardian, ports) as tap:
        client = tap.client("a")
        await client.ping()
        await tap.links["a"].stall("up")
        held = asyncio.ensure_future(client.set("k", "v"))
        await asyncio.sleep(0.2)
        assert "SET" not in await tap.names("a")
        healing = time.monotonic()
        await tap.links["a"].heal()
        await held
        await tap.names("a")
        (command,) = [command for command in tap.log.commands() if command.name == "SET"]
        assert command.at >= healing
        await client.aclose()


async def test_whoever_goes_past_the_tap_is_found(guardian: Guardian, ports: PortPool) -> None:
    async with tapped(guardian, ports) as tap:
        inside = tap.client("a")
        await inside.ping()
        assert await tap.log.bypasses() == []
        program = f"import socket,time; s=socket.create_connection(('127.0.0.1',{tap.server.port})); time.sleep(30)"
        outside = await guardian.spawn(Command(argv=["python3", "-c", program]), name="outside")

        async def found() -> bool:
            return len(await tap.log.bypasses()) == 1

        await until_async(found)
        await outside.signal(9)
        await inside.aclose()


async def test_another_protocol_passes_and_is_said_to_be_unreadable(guardian: Guardian, ports: PortPool) -> None:
    await guardian.attach()

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.read(100))
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    host = await LinkServer.start(guardian, "links")
    link = await host.open("a-redis", "127.0.0.1", server.sockets[0].getsockname()[1], tap=True)
    reader, writer = await asyncio.open_connection("127.0.0.1", link.port)
    hello = b"\x16\x03\x01\x00\xf4\r\n\xff"
    writer.write(hello)
    assert await reader.read() == hello
    log = NotesReader(host.notes, lambda: 0, list)

    async def said() -> bool:
        return len(log.unreadable()) == 1

    await until_async(said)
    writer.close()
    server.close()
    await host.close()


async def test_a_failover_is_seen_through_rewritten_addresses_while_links_can_be_cut(
    guardian: Guardian, ports: PortPool
) -> None:
    """The node asks Sentinels through a link, and every address that it gets leads through a link of its own."""
    await guardian.attach()
    plan = StorePlan("sentinel", 1, 3, 2, 0.5, 3.0, MASTER)
    watched = await StoreSet.start(guardian, ports, plan, "ha")
    members = [watched.primary, *watched.replicas]
    host = await LinkServer.start(guardian, "links")
    servers = {
        server.port: await host.open(f"a-{server.port}", "127.0.0.1", server.port, tap=True) for server in members
    }
    addresses = {f"127.0.0.1:{port}": f"127.0.0.1:{link.port}" for port, link in servers.items()}
    asked = []
    for number, sentinel in enumerate(watched.sentinels):
        link = await host.open(f"a-sentinel{number}", "127.0.0.1", sentinel.port, tap=True)
        await link.rewrite(addresses)
        asked.append(("127.0.0.1", link.port))
    node: Any = Sentinel(asked, decode_responses=True, socket_timeout=1)  # type: ignore[no-untyped-call]  # redis-py
    first, second = (servers[server.port].port for server in members)
    try:
        assert await node.discover_master(MASTER) == ("127.0.0.1", first)
        assert await node.discover_slaves(MASTER) == [("127.0.0.1", second)]
        switched = asyncio.ensure_future(_switch(asked[0][1]))
        await asyncio.sleep(0.2)
        await members[0].kill()

        async def moved() -> bool:
            with contextlib.suppress(RedisError):
                return bool(await node.discover_master(MASTER) == ("127.0.0.1", second))
            return False

        await until_async(moved, 30)
        assert await switched == f"{MASTER} 127.0.0.1 {first} 127.0.0.1 {second}"
        primary = node.master_for(MASTER, socket_timeout=1)

        async def writes() -> bool:
            with contextlib.suppress(RedisError):
                return bool(await primary.set("after", "1"))
            return False

        await until_async(writes, 30)
        await servers[members[1].port].cut()
        with pytest.raises(RedisError):
            await primary.set("cut", "1")
        await servers[members[1].port].heal()
        await until_async(writes, 30)
        log = NotesReader(host.notes, lambda: 0, list)
        assert [c.words[2] for c in log.commands() if c.name == "SET" and c.node == f"a-{members[1].port}"]
        await primary.connection_pool.disconnect()
        await primary.aclose()
    finally:
        for client in node.sentinels:
            await client.aclose()
        await host.close()
        await watched.close()


async def _switch(port: int) -> str:
    """The first `+switch-master` that a subscriber of this Sentinel gets."""
    client = Redis(port=port, decode_responses=True)
    async with client.pubsub() as channel:
        await channel.subscribe("+switch-master")
        async for message in channel.listen():
            if message["type"] == "message":
                await client.aclose()
                return str(message["data"])
    raise AssertionError("the subscription ended")


def test_notes_are_read_once_and_a_torn_line_waits(tmp_path: Path) -> None:
    notes = tmp_path / "tap.jsonl"
    log = NotesReader(notes, lambda: 0, list)
    note = {"at": 1.0, "kind": "command", "link": "a-redis", "connection": 1, "number": 1, "words": ["PING"]}
    line = json.dumps({**note, "transaction": None}) + "\n"
    notes.write_text(line[:30])
    assert log.commands() == []
    notes.write_text(line + line[:10])
    assert [command.name for command in log.commands()] == ["PING"]
    assert len(log.commands()) == 1
