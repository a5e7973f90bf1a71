"""The link process and its client: links served in a process of their own."""

import asyncio
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from holdfast.chaos.links.client import LinkServer, LinksGoneError
from holdfast.fixtures.channel import RefusedError
from holdfast.fixtures.launcher import Guardian, LaunchKind
from holdfast.fixtures.ports import PortPool
from holdfast.fixtures.redis import RedisServer
from holdfast.fixtures.resp import ask
from tests.fixtures.waiting import until

if TYPE_CHECKING:
    from holdfast.target.deployment import Link

KINDS: list[LaunchKind] = ["fork", "exec"]


@pytest.mark.parametrize("launcher", KINDS)
async def test_redis_through_a_link_meets_every_fault(
    guardian: Guardian, ports: PortPool, launcher: LaunchKind
) -> None:
    await guardian.attach()
    redis = await RedisServer.start(guardian, ports, "redis")
    server = await LinkServer.start(guardian, "links", launcher)
    port = ports.take()
    link: Link = await server.open("a-redis", "127.0.0.1", redis.port, port)
    assert link.port == port
    assert link.name == "a-redis"
    assert await ask(port, "SET", "a", "1") == "OK"

    await link.delay(0.2)
    started = time.monotonic()
    assert await ask(port, "GET", "a", deadline=10) == "1"
    assert time.monotonic() - started >= 0.4  # there and back

    await link.stall()
    with pytest.raises(TimeoutError):
        await ask(port, "PING", deadline=0.5)
    await link.refuse()
    with pytest.raises(ConnectionRefusedError):
        await ask(port, "PING")
    await link.cut()
    with pytest.raises((ConnectionResetError, BrokenPipeError, EOFError)):
        await ask(port, "PING")
    await link.heal()
    assert await ask(port, "PING") == "PONG"

    counters = await link.counters()
    assert counters.opened >= 3
    assert counters.refused == 1
    assert counters.bytes_up > 0
    assert counters.bytes_down > 0
    await server.close()


async def test_one_process_serves_many_links_and_faults_stay_on_theirs(guardian: Guardian, ports: PortPool) -> None:
    await guardian.attach()
    redis = await RedisServer.start(guardian, ports, "redis")
    server = await LinkServer.start(guardian, "links")
    links = [await server.open(name, "127.0.0.1", redis.port) for name in "abc"]
    await links[0].refuse()
    with pytest.raises(ConnectionRefusedError):
        await ask(links[0].port, "PING")
    assert [await ask(link.port, "PING") for link in links[1:]] == ["PONG", "PONG"]
    await server.close()


async def test_a_wrong_request_is_refused_in_words(guardian: Guardian) -> None:
    await guardian.attach()
    server = await LinkServer.start(guardian, "links")
    link = await server.open("a", "127.0.0.1", 1)
    with pytest.raises(RefusedError, match="link a: there is one of this name already"):
        await server.open("a", "127.0.0.1", 1)
    with pytest.raises(RefusedError, match="link a: direction 'left'"):
        await link.stall(direction="left")
    with pytest.raises(RefusedError, match=r"link b: .*Address already in use"):
        await server.open("b", "127.0.0.1", 1, link.port)
    await link.close()
    with pytest.raises(RefusedError, match="link a: not open"):
        await link.heal()
    await server.close()


async def test_a_folder_too_deep_for_a_unix_socket_is_named(tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 80)
    deep.mkdir()
    guardian = Guardian.launch(parent=deep)
    try:
        await guardian.attach()
        with pytest.raises(ValueError, match=r"links\.sock is too long for a unix socket; set TMPDIR"):
            await LinkServer.start(guardian, "links")
    finally:
        guardian.close()


async def test_a_killed_link_process_fails_every_call_with_its_name(guardian: Guardian) -> None:
    await guardian.attach()
    server = await LinkServer.start(guardian, "links")
    link = await server.open("a", "127.0.0.1", 1)
    await server.process.signal(signal.SIGSTOP)
    pending = asyncio.ensure_future(link.heal())
    await asyncio.sleep(0)
    await server.process.signal(signal.SIGKILL)
    with pytest.raises(LinksGoneError, match="the link process links "):
        await pending
    with pytest.raises(LinksGoneError):
        await link.counters()


async def test_the_link_process_leaves_on_term_and_when_its_client_leaves(guardian: Guardian) -> None:
    await guardian.attach()
    first = await LinkServer.start(guardian, "first")
    await first.process.signal(signal.SIGTERM)
    assert await first.process.wait(10) == 0

    second = await LinkServer.start(guardian, "second")
    await second.open("a", "127.0.0.1", 1)
    await second.close()
    assert second.process.returncode == 0
    until(lambda: second.process.tail() == [])
