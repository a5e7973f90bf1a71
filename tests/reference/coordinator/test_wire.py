"""What a coordinator puts on its channels, in each spelling, and what it makes of nonsense."""

import asyncio
import json
import signal
from typing import Any

import pytest

from holdfast.reference.coordinator.names import SEED, UPSTREAM, Names, profile
from holdfast.spec.asyncapi import MessageContract, document
from tests.reference.coordinator.world import (
    ASSIGNED,
    BEATS,
    HANDOFF,
    LOCK,
    World,
    free_port,
    job_id,
    until,
    world,
)


async def traffic(w: World) -> list[tuple[str, Any]]:
    """Returns all messages of all channels, with the channel of each."""
    channels = [name for name in await w.redis("KEYS", "orchestrix*") if not name.startswith("orchestrix:")]
    return [(channel, payload) for channel in channels for payload in await w.entries(channel)]


async def test_all_that_is_said_in_a_life_with_a_crash_and_a_drain_fits_the_contract() -> None:
    async with world(3) as w:
        jobs = [await w.enqueue() for _ in range(9)]
        await asyncio.gather(*(w.owned(job) for job in jobs))
        await w.redis("SADD", "orchestrix:store:jobs:cancel", jobs[0])
        for job in jobs:
            await w.status(job, "Running")
            await w.say(job, "a word")
        await asyncio.gather(*(w.reaches(job, "Running") for job in jobs))
        lost = await w.jobs_of("n2")
        w.kill_node(2)
        for job in lost:
            await w.handed_off(job)
        w.signal(0, signal.SIGTERM)
        await w.ended(0)
        await asyncio.gather(*(w.owned(job, "n1") for job in jobs))
        seen = await traffic(w)
    contract = MessageContract.of("coordinator")
    assert contract.undocumented(seen) == set()
    used = {contract.channel(address) for address, _ in seen}
    assert used == set(document("coordinator")["channels"]) - {"workerHeartbeat"}


@pytest.mark.parametrize(
    ("channel", "payload"),
    [
        (BEATS, {"nodeId": "a", "jobCount": -1, "timestamp": "2026-01-02T03:04:05Z"}),
        (BEATS, {"nodeId": "a", "jobCount": 1}),
        (HANDOFF, {"jobId": "j", "reason": "Because"}),
        (ASSIGNED, {"jobId": "j"}),
        ("orchestrix.job.j.status", {"jobId": "j", "status": "running"}),
    ],
)
def test_the_contract_refuses_what_is_not_written_so(channel: str, payload: dict[str, Any]) -> None:
    assert MessageContract.of("coordinator").problem(channel, payload)


async def test_a_node_speaks_the_upstream_spelling_when_it_is_told_to() -> None:
    async with world(0, CO_NAMES="upstream") as w:
        await w.start(0)
        job = await w.enqueue("email")
        await w.owned(job, "n0")
        record = await w.job(job)
        await w.send(f"orchestrix:job:{record['historyId']}:status", {"jobId": job, "status": 4})
        await w.reaches(job, "Running")
        assert await w.redis("GET", UPSTREAM["lock"])
        assert await w.redis("GET", LOCK) is None
        for name in ("orchestrix:job:dispatch:email", UPSTREAM["assigned"], UPSTREAM["coordinator_heartbeat"]):
            assert await w.entries(name)


def test_names_of_ones_own_replace_those_of_the_document() -> None:
    names = Names(profile(json.dumps({"status": "job.{executionId}.state"})))
    assert names.channel("status", jobId="j", executionId="e") == "job.e.state"
    assert names.channel("logs", jobId="j", executionId="e") == "orchestrix.job.j.logs"
    assert names.lock_key() == SEED["lock"]


@pytest.mark.parametrize("text", ["other", '{"status": "all"}', '{"cancel": "{queue}"}', '{"nothing": "x"}', "[1]"])
def test_names_that_can_not_be_understood_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be"):
        profile(text)


async def test_topics_may_be_published_instead_of_streamed() -> None:
    async with world(2, CO_TOPICS="pubsub") as w:
        assert dict([await w.redis("PUBSUB", "NUMSUB", BEATS)])[BEATS] == 2
        jobs = [await w.inject() for _ in range(6)]
        await asyncio.gather(*(w.owned(job) for job in jobs))
        w.signal(1, signal.SIGTERM)
        assert await w.ended(1) == 0
        await asyncio.gather(*(w.owned(job, "n0") for job in jobs))
        assert await w.redis("EXISTS", BEATS) == 0


async def test_an_overloaded_node_hands_jobs_off_down_to_the_mean() -> None:
    async with world(1, CO_REBALANCE="true") as w:
        jobs = [await w.inject() for _ in range(20)]
        await asyncio.gather(*(w.owned(job) for job in jobs))
        await w.start(1)

        async def level() -> bool:
            return len(await w.jobs_of("n0")) == len(await w.jobs_of("n1")) == 10

        await until(level)
        assert "n0" not in [ack["newOwner"] for ack in await w.entries(f"{HANDOFF}.ack.n0")]


async def test_nonsense_on_any_channel_changes_nothing_and_stops_nobody() -> None:
    async with world() as w:
        job, finished = await w.inject(), await w.seed("nobody", "Completed")
        await w.owned(job)
        half = "\\ud800"
        for text in ("{", "[]", "7", "null", "{}", f'{{"jobId": "{half}"}}', '{"jobId": 7}', "[" * 100_000):
            for channel in (ASSIGNED, HANDOFF, BEATS, "orchestrix.worker.heartbeat", f"{HANDOFF}.ack.n0"):
                await w.redis("XADD", channel, "*", "data", text)
            for kind in ("status", "logs"):
                await w.redis("XADD", f"orchestrix.job.{job}.{kind}", "*", "data", text)
        await w.redis("XADD", ASSIGNED, "*", "other", "field")
        await w.send(HANDOFF, {"jobId": job_id(), "reason": "NodeCrash"})
        await w.send(HANDOFF, {"jobId": finished, "reason": "NodeCrash", "fromNodeId": "nobody"})
        await w.redis("SET", "orchestrix.job.text.status", "no stream")
        await w.send(ASSIGNED, {"jobId": "text"})
        await w.redis("ZADD", "orchestrix:store:jobs:pending", 0, "no such job")
        await w.redis("ZADD", "orchestrix:store:schedules", 0, "no such schedule")
        last = await w.inject()
        await w.owned(last)
        await w.status(job, "Running")
        await w.say(job, "a word")
        await w.reaches(job, "Running")
        await until(lambda: said(w, job, "a word"))
        assert (await w.job(finished))["status"] == "Completed"
        assert finished not in await w.jobs_of("n0")
        assert w.nodes[0].poll() is None


async def test_a_channel_that_is_no_stream_any_more_holds_up_its_own_job_only() -> None:
    async with world() as w:
        broken, job = await w.inject(), await w.inject()
        await asyncio.gather(w.owned(broken), w.owned(job))
        await w.say(job, "before")
        await w.logged(job, "before")
        await w.redis("SET", f"orchestrix.job.{broken}.logs", "text")
        await w.say(job, "after")
        await w.logged(job, "before", "after")


async def said(w: World, job: str, message: str) -> bool:
    return message in await w.logs(job)


async def test_health_and_metrics_are_where_a_person_would_look() -> None:
    port = free_port()
    async with world(1, CO_LISTEN=f"127.0.0.1:{port}") as w:
        await w.owned(await w.enqueue())
        async with w.http.get(f"http://127.0.0.1:{port}/health") as answer:
            assert (answer.status, (await answer.json())["role"]) == (200, "Leader")
        async with w.http.get(f"http://127.0.0.1:{port}/metrics") as answer:
            assert "coordinator_jobs_dispatched_total 1.0" in await answer.text()
        async with w.http.post(f"http://127.0.0.1:{port}/health") as answer:
            assert answer.status == 405


async def test_workers_are_known_to_every_node() -> None:
    async with world(2) as w:
        await w.send("orchestrix.worker.heartbeat", {"workerId": "w1", "status": "Running", "queues": ["q1"]})

        async def known() -> bool:
            return bool(await w.redis("HEXISTS", "orchestrix:store:workers", "w1"))

        await until(known)
