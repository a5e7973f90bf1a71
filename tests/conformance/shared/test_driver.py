"""Control of real processes, their events, and work at once and meanwhile."""

import asyncio
import os
from functools import partial
from pathlib import Path

import pytest

from holdfast.check.finding import Finding, Inconclusive, NotApplicable, NotObservable
from holdfast.conformance.shared.store import stored
from holdfast.conformance.shared.wire import Request
from holdfast.fixtures.launcher import Guardian
from holdfast.fixtures.ports import PortPool
from tests.conformance.shared.driven import DESCRIPTOR, greeters


async def test_nodes_are_killed_ended_and_started_again_with_a_line_each(
    guardian: Guardian, ports: PortPool, tmp_path: Path
) -> None:
    async with greeters(guardian, ports, tmp_path) as driver:
        killed = await driver.kill("a")
        assert killed.lo < killed.hi
        assert driver.deployment.nodes["a"].pid is None
        assert not (await driver.ask(Request("GET", "/"))).answered
        await driver.restart("a", greeting="again")
        assert (await driver.ask(Request("GET", "/"))).fields == {"greeting": "again"}
        status, _ = await driver.term("b", 5.0)
        assert status == -15
        assert [line for line in driver.lines() if line[:3] in ("SIG", "res", "b e")] == [
            "SIGKILL a",
            "restart a greeting=again",
            "SIGTERM b",
            "b ended with -15",
        ]
        assert driver.hung_up == 3
        assert driver.others("a") == ["b"]


async def test_a_paused_node_is_silent_until_it_is_resumed(guardian: Guardian, ports: PortPool, tmp_path: Path) -> None:
    async with greeters(guardian, ports, tmp_path) as driver:
        await driver.pause("a")
        assert not (await driver.ask(Request("GET", "/"), within=0.3)).answered
        await driver.resume("a")
        assert (await driver.ask(Request("GET", "/"))).answered


async def test_a_start_that_must_fail_and_one_that_must_not(
    guardian: Guardian, ports: PortPool, tmp_path: Path
) -> None:
    async with greeters(guardian, ports, tmp_path) as driver:
        ending, _ = await driver.restart_fails("a", "startup_exit_max", greeting="refused")
        assert "3" in ending
        assert driver.deployment.nodes["a"].pid is None
        with pytest.raises(Finding, match="a to start") as found:
            await driver.restart("a", greeting="refused")
        assert found.value.late
        serving, _ = await driver.restart_fails("a", "startup_exit_max", greeting="fine")
        assert serving == ""
        with pytest.raises(NotObservable, match=r"\[settings\] colour"):
            await driver.restart("a", colour="red")


async def test_a_node_that_serves_elsewhere_is_waited_for(guardian: Guardian, ports: PortPool, tmp_path: Path) -> None:
    async with greeters(guardian, ports, tmp_path) as driver:
        before = driver.deployment.nodes["a"].pid

        async def serves() -> bool:
            return (await driver.ask(Request("GET", "/"))).answered

        await driver.start_unready("a", serves, "startup_exit_max", what="a to serve", greeting="x")
        assert driver.deployment.nodes["a"].pid not in (None, before)
        with pytest.raises(NotObservable, match="colour"):
            await driver.start_unready("a", serves, "startup_exit_max", what="a to serve", colour="red")


async def test_events_of_all_nodes_are_found_by_their_fields(
    guardian: Guardian, ports: PortPool, tmp_path: Path
) -> None:
    async with greeters(guardian, ports, tmp_path) as driver:
        for node in driver.nodes:
            await driver.ask(Request("POST", "/x", {"who": node}), node)
        record, _ = await driver.event(within=5.0, event="greeted", who="b")
        assert record["path"] == "/x"
        assert len(driver.events(path="/x")) == 2
        with pytest.raises(Finding, match="the event who=nobody"):
            await driver.event(within=0.1, who="nobody")


async def test_the_store_is_asked_by_its_command(guardian: Guardian, ports: PortPool, tmp_path: Path) -> None:
    async with greeters(guardian, ports, tmp_path) as driver:
        assert await stored(driver, "b") == [{"node": "b"}]


@pytest.mark.parametrize(
    ("command", "error"), [("false", Finding), ("", NotObservable)], ids=["a command that fails", "no command"]
)
async def test_a_store_that_can_not_be_asked(
    guardian: Guardian, ports: PortPool, tmp_path: Path, command: str, error: type[Exception]
) -> None:
    text = DESCRIPTOR.partition("[observe]")[0] + (f'[observe]\nstore = "{command}"\n' if command else "")
    async with greeters(guardian, ports, tmp_path, text) as driver:
        with pytest.raises(error):
            await stored(driver, "a")


async def test_work_at_once_is_gated_ordered_and_ended_with_the_check(
    guardian: Guardian, ports: PortPool, tmp_path: Path
) -> None:
    running, most, ended = 0, 0, []

    async def one(number: int) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1
        return number

    async def for_ever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    async def breaks() -> None:
        await asyncio.sleep(0.01)
        raise LookupError("broken")

    async with greeters(guardian, ports, tmp_path) as driver:
        assert await driver.parallel([partial(one, number) for number in range(20)], at_once=3) == list(range(20))
        assert most == 3
        most = 0
        await driver.parallel([partial(one, number) for number in range(20)])
        assert most == 20, "all at once unless somebody says otherwise"
        assert await driver.parallel([]) == []
        with pytest.raises(LookupError):
            await driver.parallel([for_ever, breaks])
        meanwhile = driver.beside(for_ever())
        await asyncio.sleep(0)
        assert not ended
        assert not meanwhile.done()
    assert len(ended) == 2


async def test_waiting_ends_where_the_catalogue_says_never(guardian: Guardian, ports: PortPool, tmp_path: Path) -> None:
    async with greeters(guardian, ports, tmp_path) as driver:
        looks = iter([None, None, "there"])

        async def look() -> str | None:
            return next(looks)

        assert (await driver.comes(look, "self_listed_max", what="it"))[0] == "there"
        counts = iter([1.0, 2.0, 3.0])

        async def count() -> float:
            return next(counts, 9.0)

        assert await driver.settles(count, 2.0, 3.0, why="the counter") == 2.0
        assert await driver.throughout(count, 0.3, "nothing to happen", every=0.05) > 2
        with pytest.raises(Inconclusive, match="only 1 samples"):
            await driver.throughout(count, 0.01, "nothing to happen", every=0.2)
        assert driver.T.never("self_listed_max") == 2 * driver.T.self_listed_max


async def test_what_is_watched_during_a_block_is_judged_at_its_end(
    guardian: Guardian, ports: PortPool, tmp_path: Path
) -> None:
    async with greeters(guardian, ports, tmp_path) as driver:
        looks = list[int]()

        async def look() -> None:
            looks.append(len(looks))
            assert len(looks) < 5, "too often"

        async with driver.meanwhile(look, "the block", every=0.02):
            await driver.T.until(lambda: _is(len(looks) > 2), give_up=5, what="three looks")
        with pytest.raises(AssertionError, match="too often"):
            async with driver.meanwhile(look, "the block", every=0.02):
                await driver.T.until(lambda: _is(len(looks) > 4), give_up=5, what="the look that finds it")
        looks.clear()
        with pytest.raises(Inconclusive, match="only 1 samples: the block"):
            async with driver.meanwhile(look, "the block", every=0.5):
                await driver.T.until(lambda: _is(bool(looks)), give_up=5, what="the first look")


async def _is(true: bool) -> bool:
    return true


async def test_addresses_are_those_of_the_descriptor(guardian: Guardian, ports: PortPool, tmp_path: Path) -> None:
    async with greeters(guardian, ports, tmp_path) as driver:
        assert driver.url_of(None, "https", "http") == driver.deployment.nodes["a"].urls["http"].rstrip("/")
        with pytest.raises(NotApplicable, match="no https or ws URL"):
            driver.url_of("a", "https", "ws")
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", int(driver.closed_port().rpartition(":")[2]))
        assert driver.closed_port("https").startswith("https://")
        pid = driver.deployment.nodes["a"].pid
        assert pid
        os.kill(pid, 0)
