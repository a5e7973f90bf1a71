"""Coordinators that come back (seed 7, All Coordinators Down; 4, Scenario B): under their ids, or under new ones."""

from dataclasses import dataclass

from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.coordinator.base import of_job
from holdfast.conformance.coordinator.client import Cluster
from holdfast.conformance.coordinator.ghost import silent_id
from holdfast.conformance.coordinator.messages import Job
from holdfast.conformance.coordinator.recovered import all_logs_stored, each_has_one_group
from holdfast.conformance.coordinator.store import SEED_JOB
from holdfast.conformance.coordinator.wire import COMPLETED, HANDOFF, NODE_CRASH

_FEW_LOGS, _LOGS = 3, 10
_MANY, _SOME, _SEEDED = 30, 5, 3
_WARM = "first_leader + ownership_latency + outage_length + warm_recovery"
_COLD = "first_leader + ownership_latency + outage_length + cold_recovery"


@dataclass(frozen=True)
class Return:
    """Jobs that ended while no coordinator ran, and when the first one was started again."""

    jobs: list[Job]
    started: Moment
    new_id: str = ""


async def _outage(cluster: Cluster, count: int) -> tuple[list[Job], Moment]:
    """Kills all nodes; meanwhile their jobs log and complete. Returns the jobs when outage_length is over."""
    await cluster.leader()
    await cluster.beats.first_of_all(cluster.nodes)
    jobs = await cluster.jobs.running(count)
    killed = await cluster.kill_all()
    for job in jobs:
        await cluster.worker.logs(job, _LOGS)
    await cluster.worker.completes(*jobs)
    await cluster.T.sleep_until(killed, cluster.T.outage_length, "the outage")
    return jobs, killed


async def _all_completed(cluster: Cluster, back: Return, bound: str) -> None:
    for job in back.jobs:
        await cluster.store.is_status(job, COMPLETED, bound, since=back.started)
    with cluster.context.arranging("CO-EVENT-03"):
        await cluster.groups.done(back.jobs, bound, since=back.started)
    await all_logs_stored(cluster, back.jobs)


# --- CO-FAIL-04


@verifies(
    "CO-FAIL-04",
    isolation="disruptive",
    nodes=1,
    waits="first_leader + ownership_latency + quick_restart + resume_own_jobs + orphan_check_interval",
)
async def test_a_node_that_is_back_soon_resumes_its_job(cluster: Cluster, T: SpecTime) -> None:
    node = cluster.alone
    await cluster.leader()
    job = await cluster.jobs.running_one()
    own = await cluster.id_of(node)
    killed = await cluster.kill(node)
    await cluster.worker.logs(job, _FEW_LOGS)
    await T.sleep_until(killed, T.quick_restart, "a supervisor to notice")
    started = await cluster.restart(node)
    what = f"all entries of {job.id} read and acknowledged by {node}, which is back"
    await cluster.groups.done([job], "resume_own_jobs", since=started, what=what)
    await each_has_one_group(cluster, [job])
    await cluster.groups.has_reader([job], "resume_own_jobs", since=started, among=[own])
    why = f"{node} was back before it could be taken for dead"
    await cluster.no_entry(HANDOFF, of_job(job.id, NODE_CRASH), since=killed, why=why)


async def _warm(cluster: Cluster) -> Return:
    nodes = list(cluster.nodes)
    jobs, _ = await _outage(cluster, _MANY)
    return Return(jobs, await cluster.restart_all(*nodes))


@verifies("CO-FAIL-04", part=2, isolation="disruptive", nodes=3, waits=_WARM)
async def test_nodes_that_are_all_back_consume_their_backlog(cluster: Cluster) -> None:
    back = await _warm(cluster)
    await cluster.groups.done(back.jobs, "warm_recovery", since=back.started)
    await each_has_one_group(cluster, back.jobs)


@verifies("CO-FAIL-04", part=3, isolation="disruptive", nodes=3, waits=_WARM)
async def test_nodes_that_are_all_back_store_what_they_missed(cluster: Cluster) -> None:
    await _all_completed(cluster, await _warm(cluster), "warm_recovery")


# --- CO-FAIL-05


async def _cold(cluster: Cluster) -> Return:
    jobs, _ = await _outage(cluster, _SOME)
    name, started = await cluster.start_new()
    return Return(jobs, started, await cluster.id_of(name))


@verifies("CO-FAIL-05", isolation="disruptive", nodes=1, waits=_COLD)
async def test_a_new_node_consumes_the_backlog_of_all_that_are_gone(cluster: Cluster) -> None:
    back = await _cold(cluster)
    what = "all entries of jobs whose coordinators are gone, read and acknowledged"
    await cluster.groups.done(back.jobs, "cold_recovery", since=back.started, what=what)
    await each_has_one_group(cluster, back.jobs)
    await cluster.groups.has_reader(back.jobs, "cold_recovery", since=back.started, among=[back.new_id])


@verifies("CO-FAIL-05", part=2, isolation="disruptive", nodes=1, waits=_COLD)
async def test_a_new_node_stores_what_all_that_are_gone_missed(cluster: Cluster) -> None:
    await _all_completed(cluster, await _cold(cluster), "cold_recovery")


@verifies(
    "CO-FAIL-05",
    part=2,
    isolation="disruptive",
    nodes=1,
    start="by hand",
    waits="started_leader_handoff",
    needs_hooks=[SEED_JOB],
)
async def test_owners_that_were_never_heard_are_dead_in_time(cluster: Cluster, T: SpecTime) -> None:
    gone = silent_id()
    jobs = [await cluster.store.seed(gone) for _ in range(_SEEDED)]
    started = await cluster.start()
    _, led = await cluster.lock.taken("first_leader", since=started, owner="CO-ROLE-01")
    beat = (await cluster.beats.first_of_all([await cluster.leader()])).popitem()[1].at
    dead = Moment(beat.lo + T.dead_node_timeout, beat.hi + T.dead_node_timeout)
    later = max(led, dead, key=lambda each: each.hi)
    for job in jobs:
        crash, what = of_job(job.id, NODE_CRASH), f"a NodeCrash handoff of {job.id}, whose owner was never heard"
        entry = await cluster.entry_in_time(HANDOFF, crash, bound="started_leader_handoff", since=started, what=what)
        T.at_most("orphan_check_interval", since=later, seen=entry.at, tolerance="tolerance", what=what)
