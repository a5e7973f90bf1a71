"""Scripts on a real Valkey: whole, with another body, split in two, and after a flush."""

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import ClassVar

import pytest

from holdfast.fixtures.launcher import Guardian
from holdfast.fixtures.ports import PortPool
from holdfast.fixtures.redis import RedisServer
from holdfast.reference.shared import rescripted, scripts, split
from holdfast.reference.shared.jsonlog import JsonLog
from holdfast.reference.shared.redislink import Call, RedisAway, RedisLink, Subscription
from holdfast.reference.shared.scriptstore import ScriptStore
from tests.fixtures.waiting import until_async


class Scripts(scripts.Scripts):
    folder: ClassVar[Path] = Path(__file__).parent / "lua"
    mains: ClassVar[tuple[str, ...]] = ("take",)


class Recording(split.Recording, Scripts):
    pass


class Split(split.SplitStore):
    recording: ClassVar[type[split.Recording]] = Recording
    split: ClassVar[tuple[str, ...]] = ("take",)
    gap: ClassVar[float] = 0.05


class Guarded(Split):
    mutex: ClassVar[bool] = True


class Generous(rescripted.RescriptedStore):
    lua: ClassVar[Mapping[str, str]] = {"free": "return true"}


class Node:
    """What a store needs of a node: scripts, a link, a log."""

    def __init__(self, url: str, store: type[ScriptStore]) -> None:
        self.scripts = Scripts({"key": "taken", "most": 1}, {})
        self.link = RedisLink(url, self.prepare)
        self.events = JsonLog("n", sys.stdout.buffer)
        self.store = store(self)

    async def prepare(self, call: Call) -> None:
        await self.store.prepare(call)


@asynccontextmanager
async def node(
    guardian: Guardian, ports: PortPool, store: type[ScriptStore] = ScriptStore
) -> AsyncIterator[tuple[Node, RedisServer]]:
    await guardian.attach()
    server = await RedisServer.start(guardian, ports, "redis")
    made = Node(server.url, store)
    made.link.start()
    await made.link.first(5.0)
    try:
        yield made, server
    finally:
        await made.link.close()


async def taken(made: Node, count: int = 2) -> list[bool]:
    answers = await asyncio.gather(*(made.store.run("take", {"who": str(number)}) for number in range(count)))
    return [answer["taken"] for answer in answers]


async def test_a_script_is_one_step_and_keeps_the_redis_clock(guardian: Guardian, ports: PortPool) -> None:
    async with node(guardian, ports) as (made, server):
        assert sorted(await taken(made, 5)) == [False, False, False, False, True]
        seconds, _ = await made.link.call("TIME")
        loop = asyncio.get_running_loop()
        assert abs(made.store.clock.redis_ms(loop.time()) / 1000 - int(seconds)) < 2
        await server.ask("SCRIPT", "FLUSH")
        assert await taken(made, 1) == [False], "the text goes with the call that finds no script"


async def test_a_split_script_lets_others_in_between_unless_a_lock_keeps_them_apart(
    guardian: Guardian, ports: PortPool
) -> None:
    async with node(guardian, ports, Split) as (made, server):
        assert await taken(made) == [True, True]
        assert await server.ask("SCARD", "taken") == 2


async def test_a_lock_of_one_process_keeps_its_own_runs_apart(guardian: Guardian, ports: PortPool) -> None:
    async with node(guardian, ports, Guarded) as (made, _):
        assert sorted(await taken(made)) == [False, True]


async def test_another_body_is_believed(guardian: Guardian, ports: PortPool) -> None:
    async with node(guardian, ports, Generous) as (made, _):
        assert await taken(made, 3) == [True, True, True]


async def test_a_script_that_redis_refuses_is_told_as_an_outage(
    guardian: Guardian, ports: PortPool, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    async with node(guardian, ports) as (made, server):
        await server.ask("SET", "taken", "no set")
        with pytest.raises(RedisAway, match="refused script take"):
            await made.store.run("take", {"who": "x"})


async def test_the_link_comes_back_after_a_loss_and_says_so(guardian: Guardian, ports: PortPool) -> None:
    async with node(guardian, ports) as (made, server):
        waiting = made.link.call("BLPOP", "nothing", "0")
        await server.kill()
        with pytest.raises(RedisAway):
            await waiting
        with pytest.raises(RedisAway, match=r"broken|no connection"):
            made.link.call("PING")
        await server.restart(empty=True)

        async def back() -> bool:
            return made.link.connections == 2

        await until_async(back)
        assert await taken(made, 1) == [True]


async def test_a_subscription_hears_its_channel(guardian: Guardian, ports: PortPool) -> None:
    async with node(guardian, ports) as (made, server):
        heard: asyncio.Queue[bytes] = asyncio.Queue()
        channel = Subscription(server.url, "news", heard.put_nowait)
        channel.start()
        await channel.first(5.0)
        await made.link.call("PUBLISH", "news", "hello")
        assert await asyncio.wait_for(heard.get(), 5) == b"hello"
        await channel.close()


def test_a_function_may_stand_in_any_folder_and_only_once(tmp_path: Path) -> None:
    assert set(scripts.functions(Scripts.folder)) == {"now", "write", "take", "free"}
    text = Scripts({"key": "k", "most": 1}, {}).all["take"].text
    assert text.index("function free(") < text.index("function take(")
    assert "-- Makes every change" not in text
    with pytest.raises(ValueError, match="No Lua function 'give' to replace; the names are those of the files in lua/"):
        Scripts({}, {"give": "return 1"})
