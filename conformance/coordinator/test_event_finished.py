"""A finished job is nobody's any more (seed 3, Job Distribution, step 4): not counted, not read, not handed off."""

from holdfast.check.finding import demand
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.coordinator.client import Cluster
from holdfast.conformance.coordinator.deeds import Deeds
from holdfast.conformance.coordinator.ghost import playing
from holdfast.conformance.coordinator.groups import JOB_QUEUES
from holdfast.conformance.coordinator.leaving import Leaving
from holdfast.conformance.coordinator.messages import Job
from holdfast.conformance.coordinator.store import JOB, JOBS_OF
from holdfast.target.tap import Command

_JOBS = 3


@verifies("CO-EVENT-04", isolation="quiet", waits="first_leader + 2*load_shown")
async def test_a_finished_job_is_not_counted(cluster: Cluster) -> None:
    await cluster.beats.first_of_all(cluster.nodes)
    before, since = sum((await cluster.beats.counts(cluster.nodes)).values()), cluster.T.now()
    jobs = await cluster.jobs.inject(_JOBS)
    await cluster.worker.runs(*jobs)
    with cluster.context.arranging("CO-BEAT-03"):
        await cluster.beats.add_up(cluster.nodes, before + _JOBS, "load_shown", since=since)
    published = await cluster.worker.completes(jobs[0])
    what = "heartbeats that no longer count the job that has finished"
    await cluster.beats.add_up(cluster.nodes, before + _JOBS - 1, "load_shown", since=published, what=what)


@verifies("CO-EVENT-04", part=2, isolation="quiet", waits="first_leader + 3*batch_latency")
async def test_the_channels_of_a_finished_job_are_not_read(cluster: Cluster, deeds: Deeds, T: SpecTime) -> None:
    finished, other = await cluster.jobs.running(2)
    published = await cluster.worker.completes(finished)
    await T.sleep_until(published, T.batch_latency, "the owner to leave the job")
    since = T.now()
    while T.now().lo < since.hi + T.batch_latency:
        said = await cluster.worker.logs(other)
        await cluster.groups.done([other], "event_latency", since=said, owner="CO-CHAN-04")
        await T.sleep_until(said, T.quick_gap, "the next log of the job that runs")
    reads = {job.id: _reads(cluster, deeds, job, since) for job in (finished, other)}
    demand(reads[other.id], "reads of the job that runs", "none at the tap", "it had logs all the time")
    await deeds.of_nobody_else(reads[finished.id], [], "reads", f"{finished.id} has ended")


def _reads(cluster: Cluster, deeds: Deeds, job: Job, since: Moment) -> list[Command]:
    return [each for kind in JOB_QUEUES for each in deeds.reads(cluster.names.channel(kind, **job.ids), since=since)]


@verifies("CO-EVENT-04", part=3, isolation="quiet", waits="first_leader + 2*batch_latency", needs_hooks=[JOBS_OF])
async def test_a_finished_job_is_on_no_list(cluster: Cluster, T: SpecTime) -> None:
    await cluster.beats.first_of_all(cluster.nodes)
    finished, other = await cluster.jobs.running(2)
    published = await cluster.worker.completes(finished)

    async def gone() -> bool:
        return finished.id not in await _listed(cluster)

    await cluster.comes(gone, "batch_latency", since=published, what=f"{finished.id} on the list of no node")

    async def still() -> None:
        listed = await _listed(cluster)
        demand(finished.id not in listed, f"{finished.id} on the list of no node", "it is on one again", "it has ended")
        demand(other.id in listed, f"{other.id} on the list of a node", "on none", "it runs")

    await cluster.throughout(still, T.event_latency, "a finished job that is listed again")


async def _listed(cluster: Cluster) -> set[str]:
    """Returns the jobs that are on the lists of all nodes."""
    return {job_id for node in cluster.nodes for job_id in await cluster.store.jobs_of(await cluster.id_of(node))}


# --- while it is handed off


async def _finishes_in_its_drain(cluster: Cluster, leaving: Leaving, job: Job) -> Moment:
    """Ends the job while its handoff is not acknowledged; returns when."""
    first = await leaving.offer(job)
    await cluster.T.sleep_until(first.at, cluster.T.in_first_wait, "an ACK that does not come")
    return await cluster.worker.completes(job)


_FINISHED = "first_leader + load_shown + first_offer + 2*handoff_ack_timeout"


@verifies("CO-EVENT-04", part=4, isolation="disruptive", nodes=1, waits=f"{_FINISHED} + prompt_exit")
async def test_a_job_that_finishes_while_it_is_offered_is_settled(cluster: Cluster, T: SpecTime) -> None:
    node = cluster.alone
    (job,) = await cluster.jobs.owned(1)
    async with playing(cluster.ghost()):
        leaving = cluster.leave(node)
        ended = await _finishes_in_its_drain(cluster, leaving, job)
        await T.sleep_until(ended, T.handoff_ack_timeout + T.tolerance, "a second handoff entry")
        await leaving.counted(job, 1, "the job has ended, so there is nothing to hand off")
        await leaving.exits("prompt_exit", since=ended)


@verifies(
    "CO-EVENT-04",
    part=5,
    isolation="disruptive",
    nodes=1,
    waits=f"{_FINISHED} + handoff_hard_timeout",
    needs_hooks=[JOB],
)
async def test_a_job_that_finishes_while_it_is_offered_becomes_no_orphan(cluster: Cluster) -> None:
    node = cluster.alone
    (job,) = await cluster.jobs.owned(1)

    async def no_orphan() -> None:
        record = await cluster.store.job(job)
        demand(not record.orphan_pending, "a finished job that is no orphan", record.describe(), "it has ended")

    async with playing(cluster.ghost()), cluster.meanwhile(no_orphan, "a finished job that is marked as an orphan"):
        leaving = cluster.leave(node)
        await _finishes_in_its_drain(cluster, leaving, job)
        await leaving.ends()
