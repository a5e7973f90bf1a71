"""The state is eventually consistent after any crashes (seed 7, All Coordinators Down; 4, Benefits)."""

import asyncio
from dataclasses import dataclass, field
from functools import partial

from holdfast.check.finding import demand
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.coordinator.client import Cluster
from holdfast.conformance.coordinator.messages import Job
from holdfast.conformance.coordinator.wire import COMPLETED, FAILED

# Jobs that run at a time, logs of each, and how many of five crashes are those of all nodes.
_RUNNING, _LOGS = 30, 2
_ALL_OF_FIVE, _FIVE = 1, 5


@dataclass
class Work:
    """What a worker does all the while: jobs come at the rate of the storm, and each ends some seconds later."""

    cluster: Cluster
    jobs: list[Job] = field(default_factory=list)
    over: asyncio.Event = field(default_factory=asyncio.Event)

    async def go_on(self) -> None:
        T, began, running = self.cluster.T, self.cluster.T.now(), list[Job]()
        while not self.over.is_set():
            running += await self._begin()
            if len(running) > _RUNNING:
                await self._end(running.pop(0))
            await T.sleep_until(began, len(self.jobs) / T.count("storm_rate"), "the next job")
        for job in running:
            await self._end(job)

    async def _begin(self) -> list[Job]:
        begun = await self.cluster.jobs.inject()
        self.jobs += begun
        await self.cluster.worker.runs(*begun)
        return begun

    async def _end(self, job: Job) -> None:
        await self.cluster.worker.logs(job, _LOGS)
        await self.cluster.worker.status(job, self.cluster.context.random.choice((COMPLETED, FAILED)))


async def _crash(cluster: Cluster) -> Moment:
    """Kills a node or all of them and starts them again, after pauses by chance; returns when they were started."""
    T, chance = cluster.T, cluster.context.random
    together = chance.randrange(_FIVE) < _ALL_OF_FIVE
    nodes = cluster.nodes if together else [chance.choice(cluster.nodes)]
    await cluster.parallel([partial(cluster.kill, node) for node in nodes])
    await T.sleep(chance.random() * T.outage_length, "nodes that are down")
    started = await cluster.restart_all(*nodes)
    await T.sleep(chance.random() * T.outage_length, "nodes that work")
    return started


@verifies("CO-FAIL-07", part=2, isolation="disruptive", nodes=3, waits="first_leader + storm_length + cold_recovery")
async def test_after_a_storm_of_crashes_every_job_has_its_last_status(cluster: Cluster, T: SpecTime) -> None:
    await cluster.leader()
    work, began = Work(cluster), T.now()
    working, last = cluster.beside(work.go_on()), began
    while T.now().hi < began.hi + T.storm_length:
        last = await _crash(cluster)
    work.over.set()
    await working
    wrong = dict[str, str]()

    async def consistent() -> bool:
        for job in [each for each in work.jobs if not wrong or each.id in wrong]:
            said, seen = cluster.worker.of(job).last_status, (await cluster.store.job(job)).status
            wrong.pop(job.id, None)
            if seen != said:
                wrong[job.id] = f"{seen or 'no status'} instead of {said}"
        return not wrong

    what = f"the last status of each of {len(work.jobs)} jobs in the store"
    await cluster.comes(consistent, "cold_recovery", since=last, what=what, every=T.quick_gap)
    stale = [job.id for job in work.jobs if (await cluster.store.job(job)).status != cluster.worker.of(job).last_status]
    demand(not stale, "the last status of each job", f"another of {', '.join(stale[:3])}", "it had been right before")
