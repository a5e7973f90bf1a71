"""The admission reference while Redis stalls, breaks or loses its data, and while nodes die."""

import asyncio
import signal
from functools import partial

import aiohttp
import pytest

from tests.reference.world import (
    World,
    beat,
    drop,
    in_state,
    outcomes,
    until,
    world,
)

SLOW = 0.1


@pytest.mark.parametrize("direction", ["both", "down"])
async def test_a_stall_ends_as_timeout_and_leaves_nothing_behind(direction: str) -> None:
    async with world(2) as w:
        free, full = await w.instance(3), await w.instance(0)
        entering, waiting, dropped, replacing = [await w.player() for _ in range(4)]
        first, ws = await dropped.join(free)
        drop(ws)
        await until(lambda: in_state(w, first["sessionId"], "grace"))
        old, old_ws = await replacing.join(free, node=1)
        offer = (await replacing.connect(free))["replacementToken"]

        await w.link.stall(direction)
        answers = await asyncio.gather(
            entering.connect(free),
            waiting.connect(full),
            dropped.connect(free, reconnectionToken=first["reconnectionToken"]),
            replacing.connect(free, replace=offer),
        )
        assert outcomes(answers) == {"timeout": 4}
        await w.link.heal()
        await until(lambda: w.answers(0))
        await asyncio.sleep(0.2)

        assert (await waiting.status(full, 1))["status"] == 404
        assert await beat(old_ws)
        assert await w.redis("SCARD", f"dev:session:instance:{free}") == 2
        resumed = await dropped.connect(free, 1, reconnectionToken=first["reconnectionToken"])
        assert resumed.get("sessionId") == first["sessionId"]
        assert (await replacing.connect(free, 1, replace=offer))["outcome"] == "success"
        assert (await entering.connect(free, 1))["outcome"] == "success"
        elapsed = [event["elapsedMs"] for event in w.events("connection.timeout")]
        assert len(elapsed) == 4
        assert min(elapsed) >= 1000
        assert old["sessionId"] != first["sessionId"]


async def test_a_slow_answer_before_the_deadline_is_the_true_outcome() -> None:
    async with world() as w:
        instance = await w.instance(1)
        player = await w.player()
        await w.link.stall()
        attempt = asyncio.create_task(player.connect(instance))
        await asyncio.sleep(0.7)
        await w.link.heal()
        assert (await attempt)["outcome"] == "success"


async def test_an_outage_is_refused_with_retry_after_and_sockets_live_through_it() -> None:
    async with world() as w:
        instance = await w.instance(3)
        player, other = await w.player(), await w.player()
        answer, ws = await player.join(instance)
        await w.link.refuse()
        refused = await other.connect(instance)
        assert (refused["status"], refused["reason"]) == (503, "INTERNAL_ERROR")
        assert refused["headers"]["Retry-After"] == str(refused["retryAfterSeconds"])
        assert (await other.status(instance))["status"] == 503
        for _ in range(6):
            await asyncio.sleep(0.5)
            assert await beat(ws)
        await w.link.heal()
        await until(w.answers)
        for _ in range(3):
            await asyncio.sleep(0.5)
            assert await beat(ws)
        assert (await player.connect(instance))["reason"] == "ALREADY_IN_SESSION"
        assert await w.redis("GET", f"dev:session:char:{player.character}") == answer["sessionId"]
        assert not w.events("connection.disconnected")


async def test_a_socket_that_is_lost_while_the_connection_comes_back_begins_its_grace() -> None:
    async with world(CONNECTION_GRACE_SECONDS="30", HEARTBEAT_INTERVAL_SECONDS="10") as w:
        instance, lost = await w.instance(20), list[str]()
        players = [await w.player() for _ in range(20)]
        joined = [await player.join(instance) for player in players]
        await w.link.refuse()
        await w.link.heal()
        await w.link.delay(SLOW, direction="down")  # so that it takes several of these until the connection is used
        while joined and not await w.answers():
            answer, ws = joined.pop()
            drop(ws)
            lost.append(answer["sessionId"])
            await asyncio.sleep(2 * SLOW)
        assert joined, "sockets are lost from before the connection until it is used"
        await w.link.heal()
        await until(w.answers)
        for session in lost:
            await until(partial(in_state, w, session, "grace"), 1)


async def test_sessions_are_registered_again_when_redis_comes_back_empty() -> None:
    async with world() as w:
        instance = await w.instance(1)
        player, other = await w.player(), await w.player()
        answer, ws = await player.join(instance)
        w.valkey.kill()
        w.valkey.wait()
        w.valkey = w.start_valkey()
        await until(w.answers)
        await w.instance(1, instance)
        await player.suspend(suspended=False)
        await other.suspend(suspended=False)
        assert (await other.connect(instance))["outcome"] == "queued"
        assert await w.redis("SMEMBERS", f"dev:session:instance:{instance}") == [answer["sessionId"]]
        assert await beat(ws)
        drop(ws)
        await until(lambda: in_state(w, answer["sessionId"], "grace"))
        resumed = await player.connect(instance, reconnectionToken=answer["reconnectionToken"])
        assert resumed["sessionId"] == answer["sessionId"]


async def test_clients_of_a_killed_node_resume_on_another_one_at_once() -> None:
    async with world(2) as w:
        instance = await w.instance(10)
        players = [await w.player() for _ in range(10)]
        joined = [await player.join(instance) for player in players]
        w.kill_node(0)
        for player, (answer, _) in zip(players, joined, strict=True):
            for _ in range(3):  # a busy machine may need the whole deadline; the token stays good
                resumed = await player.connect(instance, 1, reconnectionToken=answer["reconnectionToken"])
                if resumed["outcome"] != "timeout":
                    break
            assert resumed.get("sessionId") == answer["sessionId"], resumed


async def test_a_node_that_is_stopped_sends_its_clients_elsewhere_and_exits_with_0() -> None:
    async with world(2) as w:
        instance = await w.instance(1)
        player = await w.player()
        answer, ws = await player.join(instance)
        w.nodes[0].send_signal(signal.SIGTERM)
        assert (await ws.receive(timeout=2)).data == 1001
        assert await asyncio.to_thread(w.nodes[0].wait, 5) == 0
        assert await in_state(w, answer["sessionId"], "grace")
        resumed = await player.connect(instance, 1, reconnectionToken=answer["reconnectionToken"])
        assert resumed["sessionId"] == answer["sessionId"]


async def test_a_link_cut_amid_connects_leaves_one_session_each() -> None:
    async with world() as w:
        instance = await w.instance(200)
        players = [await w.player() for _ in range(60)]
        tries = [asyncio.create_task(player.connect(instance)) for player in players]
        await asyncio.sleep(0.02)
        await w.link.cut()
        first = await asyncio.gather(*tries)
        await w.link.heal()
        await until(w.answers)
        for player, answer in zip(players, first, strict=True):
            if answer["outcome"] != "success":
                again = await player.connect(instance)
                assert again["outcome"] == "success" or again["reason"] == "ALREADY_IN_SESSION"
        assert await w.redis("SCARD", f"dev:session:instance:{instance}") == 60
        assert len(await w.redis("KEYS", "dev:session:char:*")) == 60


async def test_killed_promoters_lose_nobody_and_double_nobody() -> None:
    async with world(2, HEARTBEAT_INTERVAL_SECONDS="30") as w:
        instance = await w.instance(2)
        players = [await w.player() for _ in range(20)]
        inside = [(player, await player.connect(instance, 1)) for player in players]
        for player, answer in inside[:2]:
            await player.leave(instance, answer["sessionId"], 1)
            w.kill_node(0)
            w.start_node(0)
            await until(w.answers)
        await until(lambda: _free_of_waiting(w, instance, 16))
        sessions = await w.redis("KEYS", "dev:session:char:*")
        waiting = await w.redis("ZRANGE", f"dev:queue:pending:{instance}", 0, -1)
        assert len(sessions) + len(waiting) == 18
        assert not {key.rpartition(":")[2] for key in sessions} & set(waiting)


async def _free_of_waiting(w: World, instance: str, depth: int) -> bool:
    return bool(await w.redis("ZCARD", f"dev:queue:pending:{instance}") == depth)


async def test_events_are_copied_to_a_sink_that_may_stall_without_anybody_noticing() -> None:
    lines: list[bytes] = []
    go_on, gone = asyncio.Event(), asyncio.Event()

    async def sink(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            lines.append(line)
            await go_on.wait()
            writer.write(b"\n")
        writer.close()
        gone.set()

    server = await asyncio.start_server(sink, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        async with world(AUDIT_SINK=f"tcp://127.0.0.1:{port}") as w:
            instance = await w.instance(5)
            for _ in range(5):
                assert (await (await w.player()).connect(instance))["outcome"] == "success"
            assert len(lines) == 1
            go_on.set()
            await until(lambda: _enough(lines, 10))
        await asyncio.wait_for(gone.wait(), 5)


async def _enough(lines: list[bytes], count: int) -> bool:
    return len(lines) >= count


async def test_a_node_comes_up_while_redis_is_away_and_serves_when_it_is_there() -> None:
    async with world() as w:
        w.kill_node(0)
        await w.link.refuse()
        w.start_node(0)
        await until(lambda: _healthy(w))
        assert (await w.admin("GET", "/drain-mode/status"))["status"] == 503
        async with w.http.get(f"http://127.0.0.1:{w.ports[0]}/metrics") as response:
            assert "# TYPE queue_depth_peak gauge" in await response.text()
        await w.link.heal()
        await until(w.answers)


async def _healthy(w: World) -> bool:
    try:
        answer = await w.call("GET", "/health", {})
    except aiohttp.ClientError:
        return False
    return bool(answer["status"] == "healthy" or answer["status"] == 200)
