"""Coordinators as processes on a real Valkey: leading, owning, handing over, recovering."""

import asyncio
import signal

from tests.reference.coordinator.world import ASSIGNED, HANDOFF, LOCK, World, job_id, until, world


async def test_one_node_leads_dispatches_and_owns() -> None:
    async with world() as w:
        job = await w.enqueue("email")
        await w.owned(job, "n0")
        (sent,) = await w.entries("orchestrix.job.dispatch.email")
        (offered,) = await w.entries(ASSIGNED)
        assert (sent["jobId"], sent["executionId"]) == (job, offered["historyId"])
        await w.say(job, "one", "two")
        await w.status(job, "Running")
        await w.reaches(job, "Running")
        await w.logged(job, "one", "two")
        await w.status(job, "Completed", completedAt="2026-01-02T03:04:05+00:00")
        await w.reaches(job, "Completed")
        assert await w.jobs_of("n0") == set()


async def test_events_that_came_before_the_owner_are_processed() -> None:
    async with world() as w:
        job = job_id()
        await w.say(job, "early")
        await w.status(job, "Running")
        await w.inject(job)
        await w.reaches(job, "Running")
        await w.logged(job, "early")


async def test_assignments_are_shared_by_all_nodes() -> None:
    async with world(3) as w:
        jobs = [await w.inject() for _ in range(60)]
        await asyncio.gather(*(w.owned(job) for job in jobs))
        shares = [len(await w.jobs_of(f"n{n}")) for n in range(3)]
        assert sum(shares) == 60
        assert min(shares) >= 10


async def test_another_node_leads_when_the_lease_has_run_out() -> None:
    async with world(2) as w:
        w.kill_node(0)
        job = await w.enqueue()
        await w.leads("n1")
        await w.owned(job, "n1")


async def test_a_deposed_leader_leads_no_more_and_keeps_its_jobs() -> None:
    async with world() as w:
        mine = await w.inject()
        await w.owned(mine)
        await w.redis("SET", LOCK, "foreign")
        await asyncio.sleep(0.7)
        waiting = await w.enqueue()
        await w.status(mine, "Running")
        await w.reaches(mine, "Running")
        await asyncio.sleep(0.5)
        assert await w.redis("GET", LOCK) == "foreign"
        assert await w.has_status(waiting, "Pending")
        await w.redis("DEL", LOCK)
        await w.owned(waiting)


async def test_a_drained_node_hands_its_jobs_over_and_exits() -> None:
    async with world(3) as w:
        jobs = [await w.inject() for _ in range(30)]
        await asyncio.gather(*(w.owned(job) for job in jobs))
        mine = await w.jobs_of("n1")
        w.signal(1, signal.SIGTERM)
        for number in range(40):
            for job in mine:
                await w.say(job, str(number))
            await asyncio.sleep(0.01)
        assert await w.ended(1) == 0
        assert await w.jobs_of("n1") == set()
        for job in mine:
            await w.logged(job, *map(str, range(40)))
            (offer,) = await w.handoffs(job)
            assert (offer["reason"], offer["fromNodeId"]) == ("Shutdown", "n1")
        acks = await w.entries(f"{HANDOFF}.ack.n1")
        assert {ack["jobId"] for ack in acks} == mine
        assert len(acks) == len(mine)


async def test_a_leader_that_drains_frees_the_lock() -> None:
    async with world(2) as w:
        job = await w.inject()
        await w.owned(job)
        w.signal(0, signal.SIGTERM)
        assert await w.ended(0) == 0
        await w.leads("n1")
        assert await w.owner(job) == "n1"


async def test_a_job_that_nobody_takes_is_offered_four_times_and_marked() -> None:
    async with world() as w:
        job = await w.inject()
        await w.owned(job)
        await w.status(job, "Running")
        await w.beat("ghost")
        beating = asyncio.create_task(keep_beating(w))
        w.signal(0, signal.SIGTERM)
        assert await w.ended(0) == 3
        beating.cancel()
        assert len(await w.handoffs(job)) == 4
        record = await w.job(job)
        assert (record["status"], record["ownershipState"], record["ownerNode"]) == ("Running", "ORPHAN_PENDING", "n0")
        await w.start(1)
        await w.owned(job, "n1")
        assert (await w.job(job))["ownershipState"] == "Owned"


async def keep_beating(w: World) -> None:
    while True:
        await w.beat("ghost")
        await asyncio.sleep(0.2)


async def test_an_ack_of_a_ghost_settles_the_job_that_it_names() -> None:
    async with world() as w:
        one, two = [await w.inject(), await w.inject()]
        await w.owned(one)
        await w.owned(two)
        w.signal(0, signal.SIGTERM)
        await w.handed_off(two)
        await w.acknowledge("n0", job_id())
        await w.acknowledge("other", two)
        await w.acknowledge("n0", one, None)
        await w.handed_off(two, 3)
        await w.acknowledge("n0", two)
        assert await w.ended(0) == 0
        assert len(await w.handoffs(one)) == 1
        assert await w.jobs_of("ghost") == {two}


async def test_a_job_that_finishes_while_it_is_offered_needs_no_new_owner() -> None:
    async with world() as w:
        job = await w.inject()
        await w.owned(job)
        w.signal(0, signal.SIGTERM)
        await w.handed_off(job)
        await w.status(job, "Completed")
        assert await w.ended(0) == 0
        assert len(await w.handoffs(job)) == 1


async def test_the_jobs_of_a_killed_node_are_recovered_with_all_their_events() -> None:
    async with world(3) as w:
        jobs = [await w.inject() for _ in range(12)]
        await asyncio.gather(*(w.owned(job) for job in jobs))
        lost = await w.jobs_of("n1")
        w.kill_node(1)
        for job in lost:
            channel = f"orchestrix.job.{job}.logs"
            await w.say(job, "read and not finished")
            await w.redis("XREADGROUP", "GROUP", "owner", "n1", "STREAMS", channel, ">")
            await w.say(job, "unread")
            await w.status(job, "Completed")
        for job in lost:
            await w.logged(job, "read and not finished", "unread")
            await w.reaches(job, "Completed")
            (offer,) = await w.handoffs(job)
            assert (offer["reason"], offer["fromNodeId"], offer["ackTo"]) == ("NodeCrash", "n1", "n0")
        assert await w.jobs_of("n1") == set()


async def test_a_frozen_owner_that_wakes_has_lost_its_jobs_and_harms_nobody() -> None:
    async with world(2) as w:
        jobs = [await w.inject() for _ in range(6)]
        await asyncio.gather(*(w.owned(job) for job in jobs))
        lost = await w.jobs_of("n1")
        w.signal(1, signal.SIGSTOP)
        for job in lost:
            await w.owned(job, "n0")
        w.signal(1, signal.SIGCONT)
        for number in range(10):
            for job in lost:
                await w.say(job, str(number))
        for job in lost:
            await w.logged(job, *map(str, range(10)))
        more = [await w.inject() for _ in range(10)]
        await asyncio.gather(*(w.owned(job) for job in more))
        assert await w.jobs_of("n1")


async def test_a_frozen_leader_that_wakes_does_nothing_as_leader() -> None:
    async with world(1) as w:
        w.signal(0, signal.SIGSTOP)
        await w.redis("SET", LOCK, "foreign")
        await asyncio.sleep(1.6)
        job = await w.enqueue()
        w.signal(0, signal.SIGCONT)
        await asyncio.sleep(0.7)
        assert await w.has_status(job, "Pending")
        await w.redis("DEL", LOCK)
        await w.owned(job)
        assert len(await w.entries("orchestrix.job.dispatch.q1")) == 1


async def test_all_nodes_may_die_and_come_back_under_new_ids() -> None:
    async with world(2) as w:
        jobs = [await w.inject() for _ in range(6)]
        await asyncio.gather(*(w.owned(job) for job in jobs))
        w.kill_node(0)
        w.kill_node(1)
        for job in jobs:
            await w.say(job, "meanwhile")
            await w.status(job, "Completed")
        waiting = await w.inject()
        await w.start(2)
        for job in jobs:
            await w.reaches(job, "Completed")
            await w.logged(job, "meanwhile")
        await w.owned(waiting, "n2")


async def test_a_node_that_comes_back_under_its_id_resumes_its_jobs() -> None:
    async with world() as w:
        job = await w.inject()
        await w.owned(job)
        w.kill_node(0)
        await w.say(job, "meanwhile")
        await w.start(0)
        await w.logged(job, "meanwhile")
        assert await w.handoffs(job) == []


async def test_what_is_stuck_with_a_dead_consumer_is_taken_over() -> None:
    async with world() as w:
        w.kill_node(0)
        job = await w.inject()
        await w.redis("XREADGROUP", "GROUP", "followers", "ghost-1", "STREAMS", ASSIGNED, ">")
        await w.start(1)
        await w.owned(job, "n1")


async def test_schedules_timeouts_and_cancels_are_leader_work() -> None:
    async with world() as w:
        await w.redis("HSET", "orchestrix:store:schedule:s", "queue", "q2", "intervalMs", "60000", "isEnabled", "true")
        await w.redis("ZADD", "orchestrix:store:schedules", 0, "s")
        late = await w.enqueue("q1", timeoutMs=300)
        kept, cancelled = await w.enqueue("q1"), await w.enqueue("q1")
        for job in (late, kept, cancelled):
            await w.owned(job)
            await w.status(job, "Running")
        await w.redis("SADD", "orchestrix:store:jobs:cancel", cancelled)
        await w.reaches(late, "TimedOut")
        assert await w.has_status(kept, "Running")

        async def told() -> bool:
            return [each["jobId"] for each in await w.entries("orchestrix.job.cancel")] == [cancelled]

        await until(told)
        assert await w.entries("orchestrix.job.dispatch.q2")
