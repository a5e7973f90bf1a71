"""Coordinators that are cut off from Redis, for a while or for good."""

import asyncio
import signal

import pytest

from tests.reference.coordinator.world import HANDOFF, LOCK, until, world


@pytest.mark.parametrize("fault", ["refuse", "stall"])
async def test_a_node_that_can_not_reach_redis_is_gone_when_its_hard_limit_is_over(fault: str) -> None:
    async with world(1, linked=0, CO_HARD_TIMEOUT_MS="2000") as w:
        await w.taken(await w.inject())
        await getattr(w.link, fault)()
        w.signal(0, signal.SIGTERM)
        assert await w.ended(0) == 3


async def test_a_leader_that_was_cut_off_leads_no_more_when_it_is_back() -> None:
    async with world(2, linked=0) as w:
        await w.link.refuse()
        await w.leads("n1")
        term = await w.redis("GET", LOCK)
        jobs = [await w.enqueue() for _ in range(10)]
        await w.link.heal()
        await asyncio.gather(*(w.owned(job) for job in jobs))
        assert await w.redis("GET", LOCK) == term
        assert len(await w.entries("orchestrix.job.dispatch.q1")) == 10
        assert w.said(0, "job.dispatched") == []


async def test_the_jobs_of_a_node_that_was_cut_off_are_another_ones_and_complete() -> None:
    async with world(2, linked=1) as w:
        jobs = [await w.inject() for _ in range(8)]
        await asyncio.gather(*(w.taken(job) for job in jobs))
        lost = await w.jobs_of("n1")
        await w.link.refuse()
        for job in lost:
            await w.say(job, "meanwhile")
        for job in lost:
            await w.owned(job, "n0")
        await w.link.heal()
        for job in lost:
            await w.say(job, "afterwards")
            await w.logged(job, "meanwhile", "afterwards")

        async def plain_member_again() -> bool:
            await w.owned(await w.inject())
            return bool(await w.jobs_of("n1"))

        await until(plain_member_again)


async def test_an_interruption_that_is_shorter_than_the_timeout_moves_no_job() -> None:
    async with world(2, linked=1, CO_DEAD_NODE_MS="6000") as w:
        jobs = [await w.inject() for _ in range(8)]
        await asyncio.gather(*(w.taken(job) for job in jobs))
        await w.link.cut()
        await w.link.heal()
        for job in jobs:
            await w.say(job, "a word")
            await w.logged(job, "a word")
        assert await w.entries(HANDOFF) == []
