"""The admission reference in real processes with a real Valkey: what its parts do together."""

import asyncio
import signal
from collections.abc import Iterable
from itertools import pairwise

import aiohttp
import pytest

from tests.reference.world import Answer, Player, World, bearer, beat, drop, until, world


def outcomes(answers: Iterable[Answer]) -> dict[str, int]:
    names = [answer["outcome"] if answer["outcome"] != "failed" else answer["reason"] for answer in answers]
    return {name: names.count(name) for name in names}


async def test_a_burst_over_two_nodes_fills_the_slots_and_the_queue_exactly() -> None:
    async with world(2, MAX_QUEUE_LENGTH="20") as w:
        instance = await w.instance(10)
        players = [await w.player() for _ in range(60)]
        answers = await asyncio.gather(*(p.connect(instance, n % 2) for n, p in enumerate(players)))

        assert outcomes(answers) == {"success": 10, "queued": 20, "QUEUE_FULL": 30}
        positions = [answer["position"] for answer in answers if answer["outcome"] == "queued"]
        assert sorted(positions) == list(range(20))
        for player, answer in zip(players, answers, strict=True):
            if answer["outcome"] == "queued":
                assert (await player.status(instance, 1))["position"] == answer["position"]


async def test_one_character_gets_one_session_however_often_it_asks_at_once() -> None:
    async with world(2) as w:
        instances = [await w.instance(5) for _ in range(3)]
        player = await w.player()
        answers = await asyncio.gather(*(player.connect(instances[n % 3], n % 2) for n in range(30)))
        assert outcomes(answers) == {"success": 1, "ALREADY_IN_SESSION": 29}


async def test_parallel_failures_lock_at_the_fifth_and_the_lock_lifts_by_itself() -> None:
    async with world(2) as w:
        instance = await w.instance(5)
        player = await w.player()
        answers = await asyncio.gather(*(player.connect(instance, n % 2, clientBuild="old") for n in range(30)))
        assert outcomes(answers) == {"VERSION_MISMATCH": 5, "RATE_LIMITED": 25}
        remaining = [a["remainingAttempts"] for a in answers if a["reason"] == "VERSION_MISMATCH"]
        assert sorted(remaining) == [0, 1, 2, 3, 4]

        locked = await player.connect(instance)
        assert (locked["status"], locked["retryAfterSeconds"]) == (429, 3)
        assert locked["headers"]["Retry-After"] == "3"
        assert await until(lambda: _succeeds(player, instance))


async def _succeeds(player: Player, instance: str, node: int = 0) -> bool:
    return bool((await player.connect(instance, node))["outcome"] == "success")


async def test_a_dropped_session_is_resumed_once_with_its_token_on_another_node() -> None:
    async with world(2) as w:
        instance = await w.instance(1)
        player = await w.player()
        answer, ws = await player.join(instance)
        drop(ws)
        await until(lambda: _in_state(w, answer["sessionId"], "grace"))
        assert (await player.connect(instance))["reason"] == "ALREADY_IN_SESSION"

        token = answer["reconnectionToken"]
        answers = await asyncio.gather(*(player.connect(instance, 1, reconnectionToken=token) for _ in range(5)))
        resumed = [each for each in answers if each["outcome"] == "success"]
        assert [each["sessionId"] for each in resumed] == [answer["sessionId"]]
        assert resumed[0]["reconnectionToken"] != token


async def _in_state(w: World, session: str, state: str) -> bool:
    record = await w.redis("GET", f"dev:session:data:{session}")
    return record is not None and f'"state":"{state}"' in record


async def test_the_old_socket_is_closed_before_the_token_of_a_live_session_is_honoured() -> None:
    async with world(2) as w:
        instance = await w.instance(1)
        player = await w.player()
        answer, old = await player.join(instance, node=0)
        resumed = await player.connect(instance, 1, reconnectionToken=answer["reconnectionToken"])
        assert resumed["sessionId"] == answer["sessionId"]
        assert (await old.receive(timeout=1)).data == 4002
        new = await player.attach(instance, answer["sessionId"], 1)
        assert (await new.receive_json())["type"] == "session_ready"
        assert not w.events("connection.disconnected")


async def test_grace_ends_by_itself_and_the_head_of_the_line_is_promoted() -> None:
    async with world() as w:
        instance = await w.instance(1)
        inside, first, second = [await w.player() for _ in range(3)]
        _, ws = await inside.join(instance)
        await first.connect(instance)
        await second.connect(instance)
        drop(ws)
        status = await until(lambda: _admitted(first, instance))
        assert await first.status(instance) == {**status, "headers": (await first.status(instance))["headers"]}
        assert (await second.status(instance))["position"] == 0
        reasons = [event["reason"] for event in w.events("connection.disconnected")]
        assert reasons == ["network", "grace_expired"]


async def _admitted(player: Player, instance: str) -> Answer | None:
    answer = await player.status(instance)
    return answer if answer.get("state") == "admitted" else None


async def test_a_silent_socket_is_reaped_while_a_beating_one_lives_on() -> None:
    async with world() as w:
        instance = await w.instance(2)
        silent, lively = await w.player(), await w.player()
        _, still = await silent.join(instance)
        _, beating = await lively.join(instance)
        for _ in range(5):
            await asyncio.sleep(0.8)
            assert await beat(beating)
        assert (await still.receive(timeout=1)).data == 4003
        assert (await lively.connect(instance))["reason"] == "ALREADY_IN_SESSION"
        assert [event["reason"] for event in w.events("connection.disconnected")] == ["network"]


async def test_a_replacement_closes_the_old_socket_and_logs_one_disconnection() -> None:
    async with world() as w:
        instance = await w.instance(1)
        player, waiting = await w.player(), await w.player()
        answer, ws = await player.join(instance)
        await waiting.connect(instance)
        offers = [(await player.connect(instance))["replacementToken"] for _ in range(2)]
        answers = await asyncio.gather(*(player.connect(instance, replace=offer) for offer in offers))
        assert outcomes(answers) == {"success": 1, "INVALID_REPLACE_TOKEN": 1}
        assert (await ws.receive(timeout=1)).data == 4001
        assert (await waiting.status(instance))["position"] == 0
        old = [e for e in w.events("connection.disconnected") if e["sessionId"] == answer["sessionId"]]
        assert [event["reason"] for event in old] == ["replace"]


@pytest.mark.parametrize("direction", ["both", "down"])
async def test_a_stall_ends_as_timeout_and_leaves_nothing_behind(direction: str) -> None:
    async with world(2) as w:
        free, full = await w.instance(3), await w.instance(0)
        entering, waiting, dropped, replacing = [await w.player() for _ in range(4)]
        first, ws = await dropped.join(free)
        drop(ws)
        await until(lambda: _in_state(w, first["sessionId"], "grace"))
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
        await until(lambda: _in_state(w, answer["sessionId"], "grace"))
        resumed = await player.connect(instance, reconnectionToken=answer["reconnectionToken"])
        assert resumed["sessionId"] == answer["sessionId"]


async def test_clients_of_a_killed_node_resume_on_another_one_at_once() -> None:
    async with world(2) as w:
        instance = await w.instance(10)
        players = [await w.player() for _ in range(10)]
        joined = [await player.join(instance) for player in players]
        w.nodes[0].kill()
        w.nodes[0].wait()
        for player, (answer, _) in zip(players, joined, strict=True):
            resumed = await player.connect(instance, 1, reconnectionToken=answer["reconnectionToken"])
            assert resumed.get("sessionId") == answer["sessionId"], resumed


async def test_a_node_told_to_stop_sends_its_clients_elsewhere_and_exits_with_0() -> None:
    async with world(2) as w:
        instance = await w.instance(1)
        player = await w.player()
        answer, ws = await player.join(instance)
        w.nodes[0].send_signal(signal.SIGTERM)
        assert (await ws.receive(timeout=2)).data == 1001
        assert await asyncio.to_thread(w.nodes[0].wait, 5) == 0
        assert await _in_state(w, answer["sessionId"], "grace")
        resumed = await player.connect(instance, 1, reconnectionToken=answer["reconnectionToken"])
        assert resumed["sessionId"] == answer["sessionId"]


async def test_drain_refuses_newcomers_and_serves_those_who_are_there() -> None:
    async with world(2) as w:
        instance = await w.instance(1)
        inside, waiting, late = [await w.player() for _ in range(3)]
        answer, _ = await inside.join(instance)
        await waiting.connect(instance)
        await w.admin("POST", f"/drain-mode/instance/{instance}", {"enabled": True}, node=1)
        assert (await late.connect(instance))["reason"] == "DRAIN_MODE"
        assert (await waiting.connect(instance))["position"] == 0
        assert "replacementToken" not in await inside.connect(instance)
        await inside.leave(instance, answer["sessionId"], 1)
        assert await until(lambda: _admitted(waiting, instance))


async def test_hostile_bodies_get_the_specs_error_and_change_nothing() -> None:
    bodies = [b"", b"{", b"[]", b"\xff\xfe", b"null", b'{"characterId": 1e999}', b'{"characterId": {}}']
    bodies += [b"[" * 30_000, b'{"characterId": "\\ud800"}', b'{"characterId":' + b"9" * 5000 + b"}", b"x" * 70_000]
    async with world() as w:
        instance = await w.instance(1)
        before = await w.redis("KEYS", "dev:session:*"), await w.redis("KEYS", "dev:queue:*")
        for number, body in enumerate(bodies):
            headers = {**bearer(f"hostile-{number}"), "Content-Type": "application/json"}
            url = f"http://127.0.0.1:{w.ports[0]}/instances/{instance}/connect"
            async with w.http.post(url, data=body, headers=headers) as response:
                answer = await response.json(content_type=None)
                assert response.status in {200, 400, 413}, (body[:20], answer)
                assert answer["outcome"] == "failed"
        assert before == (await w.redis("KEYS", "dev:session:*"), await w.redis("KEYS", "dev:queue:*"))
        assert len(w.events("connection.attempt")) == len(w.events("connection.failed")) == len(bodies)


async def test_positions_pushed_over_a_socket_agree_with_the_poll() -> None:
    async with world() as w:
        instance = await w.instance(1)
        inside, first, second = [await w.player() for _ in range(3)]
        answer, _ = await inside.join(instance)
        await first.connect(instance)
        await second.connect(instance)
        url = f"http://127.0.0.1:{w.ports[0]}/instances/{instance}/ws?characterId={second.character}"
        watch = await w.http.ws_connect(url, headers=bearer(second.user))
        assert await watch.receive_json() == {"type": "queue_update", "position": 1, "depth": 2}
        await inside.leave(instance, answer["sessionId"])
        assert await watch.receive_json(timeout=2) == {"type": "queue_update", "position": 0, "depth": 1}
        assert (await second.status(instance))["position"] == 0


async def test_arrival_order_decides_whatever_the_nodes_clocks_say() -> None:
    async with world(2) as w:
        instance = await w.instance(0)
        players = [await w.player() for _ in range(10)]
        for position, player in enumerate(players):
            assert (await player.connect(instance, position % 2))["position"] == position
        scores = await w.redis("ZRANGE", f"dev:queue:pending:{instance}", 0, -1, "WITHSCORES")
        assert all(float(a) < float(b) for a, b in pairwise(scores[1::2]))


async def test_refused_sockets_tell_the_reason_by_their_close_code() -> None:
    async with world() as w:
        instance = await w.instance(2)
        player, stranger = await w.player(), await w.player()
        answer, ws = await player.join(instance)
        again = await player.attach(instance, answer["sessionId"])
        foreign = await stranger.attach(instance, answer["sessionId"])
        unknown = await player.attach(instance, "00000000-0000-4000-8000-000000000000")
        codes = [(await each.receive()).data for each in (again, foreign, unknown)]
        assert codes == [4409, 4403, 4404]
        assert await beat(ws)
        await ws.close(code=1000)
        assert await until(lambda: _succeeds(player, instance))
        assert isinstance(ws, aiohttp.ClientWebSocketResponse)
