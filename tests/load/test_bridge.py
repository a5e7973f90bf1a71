"""The asyncio bridge: a real asyncio client in its own process, called by greenlets of a patched one."""

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from aiohttp import web


@contextmanager
def echoing() -> Iterator[str]:
    """Serves a WebSocket that sends everything back, in a thread with a loop of its own."""
    loop, ready, urls = asyncio.new_event_loop(), threading.Event(), list[str]()

    async def echo(request: web.Request) -> web.WebSocketResponse:
        ws = web.WebSocketResponse()
        await ws.prepare(request)
        async for message in ws:
            await ws.send_str(message.data)
        return ws

    async def start() -> web.AppRunner:
        app = web.Application()
        app.router.add_get("/", echo)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        urls.append(f"ws://127.0.0.1:{runner.addresses[0][1]}/")
        ready.set()
        return runner

    def run() -> None:
        asyncio.set_event_loop(loop)
        runner = loop.run_until_complete(start())
        loop.run_forever()
        loop.run_until_complete(runner.cleanup())

    thread = threading.Thread(target=run)
    thread.start()
    ready.wait()
    try:
        yield urls[0]
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@pytest.fixture(scope="module")
def seen() -> dict[str, Any]:
    with echoing() as url:
        words = [sys.executable, "-m", "tests.load.bridging", url]
        done = subprocess.run(words, check=True, capture_output=True, text=True, timeout=120)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_each_greenlet_gets_the_answer_to_its_own_call(seen: dict[str, Any]) -> None:
    assert seen["heard"] == [f"word {n}" for n in range(200)]


def test_moments_are_on_the_clock_of_both_processes(seen: dict[str, Any]) -> None:
    assert seen["in order"]


def test_calls_overlap_and_other_greenlets_go_on(seen: dict[str, Any]) -> None:
    assert seen["slept"] == 50
    assert seen["took"] < 0.5 * 50
    assert seen["ticks"] > 10


def test_what_breaks_is_told_to_the_greenlet_that_called(seen: dict[str, Any]) -> None:
    assert seen["broke"] == "ValueError: it broke"


def test_closing_it_leaves_nobody_waiting(seen: dict[str, Any]) -> None:
    assert "the process with the asyncio client is gone" in seen["left waiting"]


def test_the_asyncio_process_ends_when_the_other_one_is_killed() -> None:
    script = (
        "from gevent import monkey; monkey.patch_all(); import time; from holdfast.load.bridge import Bridge; "
        "b = Bridge('tests.load.echo:Echo'); b.call('sleep', seconds=0); print(b._process.pid, flush=True); "
        "time.sleep(3600)"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        pid = int(owner.stdout.readline())
        owner.kill()
    assert _gone(pid)


def _gone(pid: int) -> bool:
    until = time.monotonic() + 20
    while time.monotonic() < until:
        try:
            with open(f"/proc/{pid}/stat") as stat:  # noqa: PTH123 - a file that may vanish between two calls
                if stat.read().rpartition(")")[2].split()[0] == "Z":
                    return True
        except OSError:
            return True
        time.sleep(0.05)
    os.kill(pid, 9)
    return False
