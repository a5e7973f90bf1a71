"""The admission reference in real processes with a real Valkey: what its components do together."""

import asyncio
import ssl
from itertools import pairwise
from pathlib import Path

import aiohttp

from holdfast.fixtures.certs import CA, CERTIFICATE, KEY, make_certificates
from tests.reference.world import (
    admitted,
    bearer,
    beat,
    drop,
    free_port,
    in_state,
    outcomes,
    succeeds,
    until,
    world,
)


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
        assert await until(lambda: succeeds(player, instance))


async def test_a_dropped_session_is_resumed_once_with_its_token_on_another_node() -> None:
    async with world(2) as w:
        instance = await w.instance(1)
        player = await w.player()
        answer, ws = await player.join(instance)
        drop(ws)
        await until(lambda: in_state(w, answer["sessionId"], "grace"))
        assert (await player.connect(instance))["reason"] == "ALREADY_IN_SESSION"

        token = answer["reconnectionToken"]
        answers = await asyncio.gather(*(player.connect(instance, 1, reconnectionToken=token) for _ in range(5)))
        resumed = [each for each in answers if each["outcome"] == "success"]
        assert [each["sessionId"] for each in resumed] == [answer["sessionId"]]
        assert resumed[0]["reconnectionToken"] != token


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
        status = await until(lambda: admitted(first, instance))
        assert await first.status(instance) == {**status, "headers": (await first.status(instance))["headers"]}
        assert (await second.status(instance))["position"] == 0
        reasons = [event["reason"] for event in w.events("connection.disconnected")]
        assert reasons == ["network", "grace_expired"]


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
        assert await until(lambda: admitted(waiting, instance))


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
    async with world(2, CLOCK_OFFSET_SECONDS="{number}00") as w:
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
        assert await until(lambda: succeeds(player, instance))
        assert isinstance(ws, aiohttp.ClientWebSocketResponse)


async def test_tls_is_served_beside_plain_http(tmp_path: Path) -> None:
    folder = make_certificates(tmp_path)
    port = free_port()
    files = {"TLS_CERT_FILE": str(folder / CERTIFICATE), "TLS_KEY_FILE": str(folder / KEY)}
    async with world(1, TLS_PORT=str(port), **files) as w:
        context = ssl.create_default_context(cafile=str(folder / CA))
        async with w.http.get(f"https://127.0.0.1:{port}/health", ssl=context) as response:
            assert (await response.json())["status"] == "healthy"
