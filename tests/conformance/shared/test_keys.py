"""Looks into a real Valkey: names, values of every type, commands of a block, and what belongs together."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest
from redis.asyncio import Redis

from holdfast.conformance.shared.keys import Keys
from holdfast.conformance.shared.monitor import Command, atomic_groups, changes, members_after
from holdfast.fixtures.launcher import Guardian
from holdfast.fixtures.ports import PortPool
from tests.conformance.shared.driven import DESCRIPTOR, greeters

WITH_REDIS = (
    DESCRIPTOR.partition("[observe]")[0].replace('PORT = "{port}"', 'PORT = "{port}"\nREDIS = "{redis}"')
    + '[observe]\nredis = "{redis}"\nprefix = "t:"\nkeys = { other = "elsewhere:{}" }\n'
)

SCRIPT = "redis.call('SADD', KEYS[1], 'c') return redis.call('LPUSH', KEYS[2], 1)"


class Named(Keys):
    templates: ClassVar[Mapping[str, str]] = {"item": "item:{}", "pair": "pair:{}:{}"}


@asynccontextmanager
async def valkey(guardian: Guardian, ports: PortPool, folder: Path) -> AsyncIterator[tuple[Named, Any]]:
    """Gives the keys of a deployment, and a client like that of a node."""
    async with greeters(guardian, ports, folder, WITH_REDIS) as driver:
        client: Any = Redis.from_url(driver.deployment.store_url, decode_responses=True)
        driver.context.stack.push_async_callback(client.aclose)
        yield Named.of(driver.context), client


async def test_names_come_from_the_spec_or_the_descriptor(guardian: Guardian, ports: PortPool, tmp_path: Path) -> None:
    async with valkey(guardian, ports, tmp_path) as (keys, client):
        assert keys.name("item", "1") == "t:item:1"
        assert keys.name("pair", "1", "2") == "t:pair:1:2"
        assert keys.name("other", "x") == "t:elsewhere:x"
        assert keys.roots("item", "pair") == ("t:item:", "t:pair:")
        await client.set("t:item:1", '{"a": 1}')
        assert await keys.record("t:item:1") == {"a": 1}
        assert await keys.record("t:item:2") == {}
        assert await keys.ask("GET", "t:item:1") == '{"a": 1}'
        assert await keys.together(("GET", "t:item:1"), ("EXISTS", "t:item:2")) == ['{"a": 1}', 0]
        moment = await keys.at(await keys.now() * 1000)
        assert moment.lo <= moment.hi


async def test_values_of_every_type_can_be_compared(guardian: Guardian, ports: PortPool, tmp_path: Path) -> None:
    async with valkey(guardian, ports, tmp_path) as (keys, client):
        await client.set("t:string", "x")
        await client.sadd("t:set", "b", "a")
        await client.zadd("t:zset", {"m": 2.0})
        await client.hset("t:hash", mapping={"f": "v"})
        await client.rpush("t:list", "1", "2")
        entry = await client.xadd("t:stream", {"data": "{}"})
        assert await keys.snapshot("*") == {
            "t:string": "x",
            "t:set": ["a", "b"],
            "t:zset": [("m", 2.0)],
            "t:hash": {"f": "v"},
            "t:list": ["1", "2"],
            "t:stream": [(entry, {"data": "{}"})],
        }
        assert await keys.value("t:nothing") == "none"


async def test_a_value_that_goes_while_it_is_read_is_none(
    guardian: Guardian, ports: PortPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with valkey(guardian, ports, tmp_path) as (keys, client):
        type_of = keys.redis.type

        async def and_then_it_goes(key: str) -> Any:
            kind = await type_of(key)
            await client.delete(key)
            return kind

        await client.set("t:string", "x")
        await client.sadd("t:set", "a")
        await client.hset("t:hash", mapping={"f": "v"})
        await client.set("t:empty", "")
        assert await keys.value("t:empty") == ""
        monkeypatch.setattr(keys.redis, "type", and_then_it_goes)
        assert [await keys.value(f"t:{kind}") for kind in ("string", "set", "hash")] == ["none"] * 3


async def test_a_recording_has_every_command_and_what_was_one_step(
    guardian: Guardian, ports: PortPool, tmp_path: Path
) -> None:
    async with valkey(guardian, ports, tmp_path) as (keys, client):
        async with keys.recording() as commands:
            await client.sadd("t:set", "a")
            async with client.pipeline(transaction=True) as both:
                both.srem("t:set", "a")
                both.sadd("t:set", "b")
                await both.execute()
            await client.eval(
                "redis.call('SADD', KEYS[1], 'c') return redis.call('LPUSH', KEYS[2], 1)", 2, "t:set", "t:l"
            )
            await client.get("t:other")
        writes = await keys.write_commands()
        steps = changes(commands, writes, "t:set", "t:l")
        assert [[command.name for command in step if command.name != "eval"] for step in steps] == [
            ["sadd"],
            ["srem", "sadd"],
            ["sadd", "lpush"],
        ]
        members: set[str] = set()
        sizes = [len(members := members_after(members, step)) for step in changes(commands, writes, "t:set")]
        assert sizes == [1, 1, 2]
        assert any(command.mentions("other") for command in commands)


async def test_a_monitor_streams_commands(guardian: Guardian, ports: PortPool, tmp_path: Path) -> None:
    async with valkey(guardian, ports, tmp_path) as (keys, client), keys.monitor() as monitor:
        await client.set("t:item:1", "x")
        while "t:item:1" not in (seen := await monitor.next()):
            pass
        assert seen.startswith("SET")


def test_a_line_of_monitor_is_taken_apart() -> None:
    command = Command.parse('1.5 [0 127.0.0.1:5] "SET" "a \\"b\\"" "c\\\\d"')
    assert (command.name, command.words[1:], command.in_script) == ("set", ('a "b"', "c\\d"), False)
    assert Command.parse("OK").describe() == "OK"
    lines = ['1 [0 x] "MULTI"', '1 [0 y] "GET" "a"', '1 [0 x] "SET" "a" "1"', '1 [0 x] "EXEC"', '1 [0 lua] "GET" "b"']
    grouped = [[each.name for each in group] for group in atomic_groups(map(Command.parse, lines))]
    assert grouped == [["multi", "set", "exec"], ["get", "get"]]
    assert members_after({"a"}, [Command.parse('1 [0 x] "DEL" "k"')]) == set()
