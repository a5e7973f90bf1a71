"""Faults drawn from a seed, while jobs come in, run and end."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field

from redis.exceptions import RedisError

from holdfast.check.faults import Faults
from holdfast.check.finding import Inconclusive
from holdfast.check.hooks import HookError
from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.conformance.coordinator.client import Cluster
from holdfast.conformance.coordinator.deeds import Deeds
from holdfast.conformance.coordinator.messages import Job
from holdfast.conformance.coordinator.scenarios.steps import nothing_lost
from holdfast.conformance.coordinator.scenarios.watch import watching
from holdfast.conformance.coordinator.store import ENQUEUE
from holdfast.conformance.coordinator.wire import COMPLETED, FAILED
from holdfast.target.fault import Strength

# At least these; faults of whatever else a target offers are drawn too.
FAULTS = ("chaos.latency", "chaos.partition")
# In the spec's seconds; a strike may outlast a lease, and the silence after which a node counts as dead.
STORM = 120
STRIKES = Strength(longest=40, rest=10)
# Faults after which Redis may lack what it had confirmed; jobs of before are not judged then.
FORGETS = frozenset({"empty", "failover"})
_RUNNING, _LOGS = 10, 3


@dataclass
class _Work:
    """What a worker does all the while: jobs come, log, and end later.

    Where one of its writes was not confirmed, nobody knows whether it was written: such a job is not judged.
    """

    cluster: Cluster
    begun: dict[str, float] = field(default_factory=dict)
    ended: list[Job] = field(default_factory=list)
    unsure: int = 0
    over: asyncio.Event = field(default_factory=asyncio.Event)

    async def go_on(self) -> None:
        running = list[Job]()
        while not self.over.is_set():
            running += await self._begin()
            if len(running) > _RUNNING:
                await self._end(running.pop(0))
            await self.cluster.T.sleep(self.cluster.T.quick_gap, "the worker's next job")
        for job in running:
            await self._end(job)

    async def enqueue_on(self) -> None:
        """Gives the leader something to dispatch, where the descriptor says how."""
        T, queue = self.cluster.T, self.cluster.jobs.new_queue()
        if not await self.cluster.store.has(ENQUEUE):
            return
        while not self.over.is_set():
            with suppress(HookError, RedisError, OSError):
                await self.cluster.jobs.enqueue(queue=queue)
            await T.sleep(T.steady_gap, "the next job for the leader")

    async def _begin(self) -> list[Job]:
        job = Job()
        self.begun[job.id] = self.cluster.T.now().lo
        try:
            await self.cluster.jobs.inject(jobs=[job])
            await self.cluster.worker.runs(job)
        except (RedisError, OSError):
            self.unsure += 1
            return []
        return [job]

    async def _end(self, job: Job) -> None:
        try:
            await self.cluster.worker.logs(job, _LOGS)
            await self.cluster.worker.status(job, self.cluster.context.random.choice((COMPLETED, FAILED)))
        except (RedisError, OSError):
            self.unsure += 1
            return
        self.ended.append(job)

    def judged(self) -> list[Job]:
        """Returns the jobs that ended, and of which Redis has kept everything."""
        windows = [each for each in self.cluster.context.windows if each.fault.kind in FORGETS]
        since = max((each.healed for each in windows), default=0.0)
        return [job for job in self.ended if self.begun[job.id] > since]


@verifies(
    "CO-FAIL-07",
    part=2,
    isolation="disruptive",
    nodes=3,
    needs=FAULTS,
    waits="first_leader + 3*leader_takeover + cold_recovery",
)
async def test_random_storm(cluster: Cluster, faults: Faults, deeds: Deeds, T: SpecTime, draw: int) -> None:
    """One leads at a time, one owns each job; afterwards every event is processed and every job has its last status."""
    async with watching(cluster, deeds):
        work = _Work(cluster)
        working, enqueueing = cluster.beside(work.go_on()), cluster.beside(work.enqueue_on())
        await faults.storm(draw, STORM, STRIKES)
        over = T.now()
        work.over.set()
        _, waiting = await asyncio.wait({working, enqueueing}, timeout=cluster.never("batch_latency"))
        if waiting:
            raise Inconclusive("writes of our worker had no answer from Redis long after the storm")
        for each in (working, enqueueing):
            each.result()
        jobs = work.judged()
        cluster.context.transcript.note(f"{len(jobs)} jobs are judged; of {work.unsure} a write was not confirmed")
        if not jobs:
            raise Inconclusive("Redis has kept no job of the storm whole")
        await nothing_lost(cluster, jobs, "cold_recovery", since=over)
