"""Coordinators that are killed: the leader, an owner, all of them, the taker of a handoff (C1 … C3, C11, C13)."""

from contextlib import AsyncExitStack

from holdfast.check.faults import Faults
from holdfast.check.finding import Inconclusive
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.coordinator.bus import Entry
from holdfast.conformance.coordinator.client import Cluster
from holdfast.conformance.coordinator.deeds import Deeds
from holdfast.conformance.coordinator.messages import Job
from holdfast.conformance.coordinator.scenarios.steps import (
    in_force,
    not_early,
    nothing_lost,
    read_by,
    struck,
    told_to_stop,
)
from holdfast.conformance.coordinator.scenarios.watch import watching
from holdfast.conformance.coordinator.store import ENQUEUE
from holdfast.conformance.coordinator.wire import DISPATCH, HANDOFF

_KILLS, _JOBS, _MANY, _LOGS = 5, 5, 30, 10


@verifies(
    "CO-LOCK-03",
    isolation="disruptive",
    nodes=3,
    needs=("control.restart",),
    needs_hooks=[ENQUEUE],
    waits=f"first_leader + {_KILLS}*(dispatch_gap + start_up)",
)
async def test_c01_leader_killed_again_and_again(cluster: Cluster, faults: Faults, deeds: Deeds, T: SpecTime) -> None:
    """Each time another one leads in time and goes on dispatching; never two, and no job is dispatched twice."""
    async with watching(cluster, deeds), cluster.jobs.steadily(T.steady_gap) as given:
        for number in range(1, _KILLS + 1):
            leader, before = await cluster.leader(), await cluster.lock.sample()
            async with faults.during("kill", leader) as window:
                killed = in_force(window)
                what = f"a new leader after kill {number}"
                _, taken = await cluster.lock.taken("leader_takeover", since=killed, other_than=before.value, what=what)
                not_early(T, before, taken)
                await _dispatches(cluster, given[0].queue, killed)


async def _dispatches(cluster: Cluster, queue: str, killed: Moment) -> None:
    def after(entry: Entry) -> bool:
        return entry.at.lo > killed.hi

    what = "the next dispatch after the leader's death"
    await cluster.entry_in_time(DISPATCH, after, bound="dispatch_gap", since=killed, what=what, queue=queue)


@verifies(
    "CO-FAIL-03",
    isolation="disruptive",
    nodes=3,
    needs=("control.restart",),
    waits="first_leader + 3*load_shown + gap_processed + start_up",
)
async def test_c02_owner_killed_under_its_events(cluster: Cluster, faults: Faults, T: SpecTime) -> None:
    """Its jobs are handed off in time, and all events of before, then and afterwards are processed."""
    async with watching(cluster):
        (owner, *_) = await cluster.followers()
        crowd = await cluster.jobs.at_least(owner, 1)
        jobs = await cluster.jobs.of_node(await cluster.id_of(owner), crowd.jobs)
        async with struck(cluster, faults, "kill", owner) as crash:
            async with cluster.worker.flow(jobs[:1], T.count("event_rate")):
                crash.in_time((await crash.offers()).values())
            last = await cluster.worker.completes(*jobs)
            await nothing_lost(cluster, jobs, "gap_processed", since=last)
            await read_by(cluster, jobs, cluster.others(owner), f"{owner} was killed")


@verifies(
    "CO-CRASH-09",
    isolation="disruptive",
    nodes=3,
    needs=("control.restart",),
    waits="first_leader + 3*load_shown + new_leader_handoff + gap_processed + start_up",
)
async def test_c03_leader_killed_that_owns_jobs(cluster: Cluster, faults: Faults, T: SpecTime) -> None:
    """The next leader hands them off in time, and nothing of theirs is lost."""
    async with watching(cluster):
        leader = await cluster.leader()
        crowd = await cluster.jobs.at_least(leader, _JOBS)
        jobs = await cluster.jobs.of_node(await cluster.id_of(leader), crowd.jobs)
        async with struck(cluster, faults, "kill", leader) as crash:
            for job in jobs:
                await cluster.worker.logs(job, _LOGS)
            for each in (await crash.offers(latest=cluster.never("new_leader_handoff"))).values():
                what = f"the NodeCrash entry of {each.message.job_id}"
                T.at_most("new_leader_handoff", since=crash.killed, seen=each.at, what=what)
            last = await cluster.worker.completes(*jobs)
            await nothing_lost(cluster, jobs, "gap_processed", since=last)
            await read_by(cluster, jobs, cluster.others(leader), f"{leader} was killed")


async def _worked_on(cluster: Cluster, jobs: list[Job]) -> None:
    """What a worker does of these jobs while nobody listens."""
    for job in jobs:
        await cluster.worker.logs(job, _LOGS)
    await cluster.worker.completes(*jobs)


@verifies(
    "CO-FAIL-04",
    part=2,
    isolation="disruptive",
    nodes=3,
    waits="first_leader + 2*(ownership_latency + outage_length) + 3*start_up + warm_recovery + cold_recovery",
)
@verifies("CO-FAIL-05")
async def test_c11_all_killed_and_started_again(cluster: Cluster, faults: Faults, T: SpecTime) -> None:
    """First under their ids, then under new ones: all that workers published meanwhile is processed."""
    old = list(cluster.nodes)
    async with watching(cluster):
        jobs = await cluster.jobs.running(_MANY)
        async with AsyncExitStack() as stack:
            for node in old:
                await stack.enter_async_context(faults.during("kill", node))
            await _worked_on(cluster, jobs)
            await T.sleep(T.outage_length, "the outage")
            started = T.now()
        await nothing_lost(cluster, jobs, "warm_recovery", since=started)
        jobs = await cluster.jobs.running(_MANY)
        async with AsyncExitStack() as stack:
            for node in old:
                await stack.enter_async_context(faults.during("kill", node))
            await _worked_on(cluster, jobs)
            await T.sleep(T.outage_length, "the outage")
            name, started = await cluster.start_new()
            await nothing_lost(cluster, jobs, "cold_recovery", since=started)
            await read_by(cluster, jobs, [name], "all others are gone")


@verifies(
    "CO-FAIL-08",
    isolation="disruptive",
    nodes=3,
    needs=("control.kill", "control.restart", "chaos.latency"),
    waits="first_leader + 3*load_shown + orphans_owned + gap_processed + start_up",
)
async def test_c13_taker_killed_right_after_it_read_a_handoff(cluster: Cluster, faults: Faults, T: SpecTime) -> None:
    """A retry or the orphan check rescues what it had read, and no event is lost."""
    async with watching(cluster):
        leader = await cluster.leader()
        leaver, taker = await cluster.followers()
        crowd = await cluster.jobs.at_least(leaver, 2 * _JOBS)
        jobs = await cluster.jobs.of_node(await cluster.id_of(leaver), crowd.jobs)
        async with AsyncExitStack() as dead, AsyncExitStack() as slow:
            for node in (taker, leader):  # a leader at full speed takes everything before the other has read anything
                delay = faults.during("delay", f"{node}-redis", seconds=T.redis_delay)
                await slow.enter_async_context(delay)
            leaving = await slow.enter_async_context(told_to_stop(cluster, faults, leaver))
            await _has_read(cluster, taker)
            window = await dead.enter_async_context(faults.during("kill", taker))
            await slow.aclose()
            await leaving.exits_by("handoff_hard_timeout", since=leaving.begun, tolerance="exit_tolerance")
            among = [await cluster.id_of(leader)]
            await cluster.jobs.have_reader(jobs, "orphans_owned", since=in_force(window), among=among)
            last = await cluster.worker.completes(*jobs)
            await nothing_lost(cluster, jobs, "gap_processed", since=last)


async def _has_read(cluster: Cluster, taker: str) -> None:
    """Waits until a handoff was given to this node and not acknowledged yet."""
    id_, group = await cluster.id_of(taker), await cluster.groups.the_one(HANDOFF)

    async def look() -> bool:
        consumers = await cluster.groups.consumers(group)
        return any([each.pending and await cluster.groups.id_of(each) == id_ for each in consumers])

    with cluster.context.arranging("CO-TAKE-01"):
        await cluster.T.until(
            look, give_up=cluster.never("retry_taken"), what=f"{taker} to read a handoff", every=0.005
        )
    if cluster.deployment.nodes[taker].pid is None:
        raise Inconclusive(f"{taker} ended by itself")
