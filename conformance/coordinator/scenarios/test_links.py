"""Links that break again and again, and a Redis that goes away for a while (C8, C9)."""

from contextlib import suppress

from redis.exceptions import RedisError

from holdfast.check.faults import Faults
from holdfast.check.finding import demand
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.coordinator.client import Cluster
from holdfast.conformance.coordinator.deeds import Deeds
from holdfast.conformance.coordinator.lock import SAMPLE_EVERY
from holdfast.conformance.coordinator.logged import all_logged
from holdfast.conformance.coordinator.scenarios.steps import nothing_lost, over
from holdfast.conformance.coordinator.scenarios.watch import watching
from holdfast.conformance.coordinator.store import ENQUEUE, QUERY_LOGS

# In the spec's seconds: how long links break, and how long Redis is away.
RESETS, OUTAGE = 60, 20
# How many of five looks at a link break it, and logs a second of each job meanwhile.
_ONE_OF, _RATE = 5, 5
_JOBS, _MANY, _LOGS = 10, 20, 5


@verifies("CO-ROLE-01", part=2)
@verifies(
    "CO-DRAIN-10",
    part=2,
    isolation="disruptive",
    nodes=3,
    needs=("chaos.partition",),
    needs_hooks=[ENQUEUE],
    waits="first_leader + ownership_latency + 60*dispatch_scan + batch_latency",
)
async def test_c08_connections_break_again_and_again(
    cluster: Cluster, faults: Faults, deeds: Deeds, T: SpecTime
) -> None:
    """A fifth of all links every second: no event is lost or stored twice, and one node leads at any time."""
    async with watching(cluster, deeds):
        jobs = await cluster.jobs.running(_JOBS)
        began, chance = T.now(), cluster.context.random
        async with cluster.worker.flow(jobs, _RATE), cluster.jobs.steadily(T.steady_gap):
            while T.now().hi < began.hi + T.scaled(RESETS):
                for node in cluster.nodes:
                    if chance.randrange(_ONE_OF) == 0:
                        async with faults.during("reset", f"{node}-redis"):
                            pass
                await T.sleep(T.scaled(1), "the next look at the links")
        last = T.now()
        await cluster.groups.done(jobs, "batch_latency", since=last)
        if await cluster.store.has(QUERY_LOGS):
            await all_logged(cluster, jobs, "batch_latency", since=last)


@verifies(
    "CO-FAIL-04",
    part=2,
    isolation="disruptive",
    nodes=3,
    needs=("chaos.redis",),
    waits="first_leader + ownership_latency + quick_restart + outage_length + leader_takeover + warm_recovery",
)
async def test_c09_redis_stopped_for_a_while(cluster: Cluster, faults: Faults, T: SpecTime) -> None:
    """Every node stays and connects again, one leads, and all that was left to do is done."""
    async with watching(cluster):
        jobs = await cluster.jobs.running(_MANY)
        for job in jobs:
            await cluster.worker.logs(job, _LOGS)
        async with faults.during("down", "redis") as window:
            await T.sleep(T.scaled(OUTAGE), "Redis to be away")
        since = over(window)
        await _answers(cluster)
        gone = [node for node in cluster.nodes if node not in cluster.live]
        demand(not gone, "all nodes alive", f"{' and '.join(gone)} ended", "Redis was away and is back")
        await _led_again(cluster, since)
        for job in jobs:
            await cluster.worker.logs(job, _LOGS)
        await cluster.worker.completes(*jobs)
        await nothing_lost(cluster, jobs, "warm_recovery", since=since)


async def _led_again(cluster: Cluster, since: Moment) -> None:
    """Waits until somebody renews L or takes it: its value may have outlived the outage, whoever wrote it."""
    before = await cluster.lock.sample()

    async def look() -> bool:
        nonlocal before
        old, before = before, await cluster.lock.sample()
        return bool(before.value) and (before.left or 0.0) > (old.left or 0.0)

    what = "a leader that renews the lock after the outage"
    await cluster.comes(look, "leader_takeover", since=since, what=what, every=SAMPLE_EVERY)


async def _answers(cluster: Cluster) -> None:
    """Waits until our own connection is back, too."""

    async def look() -> bool:
        with suppress(RedisError, OSError):
            await cluster.bus.ask("PING")
            return True
        return False

    await cluster.T.until(look, give_up=cluster.never("event_latency"), what="our own connection to Redis")
