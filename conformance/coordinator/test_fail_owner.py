"""A crashed owner takes no event with it (seed 7, Follower Crashes; 2; Scenario B of section 4)."""

import itertools
from dataclasses import dataclass

from holdfast.check.finding import demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.coordinator.client import Cluster
from holdfast.conformance.coordinator.groups import Group
from holdfast.conformance.coordinator.messages import Job
from holdfast.conformance.coordinator.recovered import each_has_one_group
from holdfast.conformance.coordinator.wire import COMPLETED, LOGS, STATUS
from holdfast.conformance.coordinator.worker import first_occurrences, numbers

_LOGS, _READ, _UNREAD = 1000, 20, 60
_FLOOD = "first_leader + ownership_latency + 3*batch_latency + gap_processed"
_GAP = "first_leader + ownership_latency + gap_processed"


@dataclass(frozen=True)
class Crash:
    """A job whose owner was killed, when that was, and from when on its backlog has to be processed."""

    job: Job
    node_id: str
    killed: Moment
    since: Moment


async def _owned(cluster: Cluster) -> tuple[Job, str, str]:
    """Returns a running job, the id of the node that reads it, and that node's name."""
    await cluster.leader()
    await cluster.beats.first_of_all(cluster.nodes)
    job = await cluster.jobs.running_one()
    id_ = await cluster.groups.reader(job)
    return job, id_, await cluster.node_of(id_)


async def _in_a_flood(cluster: Cluster) -> Crash:
    """Kills the owner of a job half way through a flood of its logs."""
    job, id_, node = await _owned(cluster)
    await cluster.worker.logs(job)
    rate = cluster.T.count("log_rate")
    async with cluster.worker.flow([job], rate):
        began = cluster.T.now()
        await cluster.T.sleep_until(began, _LOGS / rate / 2, "half of the logs")
        killed = await cluster.kill(node)
        await cluster.T.sleep_until(began, _LOGS / rate, "the other half")
    return Crash(job, id_, killed, cluster.T.now())


async def _group(cluster: Cluster, kind: str, job: Job) -> Group:
    with cluster.context.arranging("CO-CHAN-04"):
        groups = await cluster.groups.of(kind, **job.ids)
        expect(len(groups), 1, why=f"groups of {cluster.names.channel(kind, **job.ids)}")
    return groups[0]


async def _with_a_backlog(cluster: Cluster) -> Crash:
    """Kills the owner of a job; some logs are pending at it then, and more follow while nobody owns the job."""
    job, id_, node = await _owned(cluster)
    logged = await cluster.worker.logs(job)
    await cluster.groups.done([job], "event_latency", since=logged, owner="CO-CHAN-04")
    killed = await cluster.kill(node)
    group = await _group(cluster, LOGS, job)
    await cluster.worker.logs(job, _READ)
    await cluster.groups.deliver(group, await cluster.groups.consumer_of(group, id_), _READ)
    await cluster.worker.spread(job, _UNREAD, cluster.T.dead_node_timeout / _UNREAD)
    await cluster.worker.completes(job)
    return Crash(job, id_, killed, killed)


async def _processed(cluster: Cluster, crash: Crash) -> None:
    what = f"all entries of {crash.job.id}, whose owner crashed, read and acknowledged"
    await cluster.groups.done([crash.job], "gap_processed", since=crash.since, what=what)
    await each_has_one_group(cluster, [crash.job])


@verifies("CO-FAIL-03", isolation="disruptive", nodes=2, waits=_FLOOD)
async def test_a_flood_of_events_outlives_the_owner(cluster: Cluster) -> None:
    await _processed(cluster, await _in_a_flood(cluster))


@verifies("CO-FAIL-03", isolation="disruptive", nodes=2, waits=_GAP)
async def test_events_that_a_dead_owner_had_read_are_processed(cluster: Cluster) -> None:
    await _processed(cluster, await _with_a_backlog(cluster))


async def _stored(cluster: Cluster, crash: Crash) -> list[int]:
    """Judges that every log that was published comes into the store; returns their numbers in that order."""
    published = set(cluster.worker.of(crash.job).numbers)

    async def all_there() -> bool:
        return published <= set(numbers(await cluster.store.logs(crash.job)))

    what = f"all {len(published)} logs of {crash.job.id} in the store"
    await cluster.comes(all_there, "gap_processed", since=crash.since, what=what)
    return numbers(await cluster.store.logs(crash.job))


@verifies("CO-FAIL-03", part=2, isolation="disruptive", nodes=2, waits=_FLOOD)
async def test_a_flood_of_events_is_stored_whole(cluster: Cluster) -> None:
    await _stored(cluster, await _in_a_flood(cluster))


@verifies("CO-FAIL-03", part=2, isolation="disruptive", nodes=2, waits=_GAP)
async def test_events_that_a_dead_owner_had_read_are_stored_in_order(cluster: Cluster) -> None:
    crash = await _with_a_backlog(cluster)
    found = first_occurrences(await _stored(cluster, crash))
    wrong = next((two for one, two in itertools.pairwise(found) if two < one), None)
    demand(wrong is None, "logs in the order of their numbers", f"{wrong} after a higher one", crash.job.id)
    await cluster.store.is_status(crash.job, COMPLETED, "gap_processed", since=crash.since)


# --- CO-FAIL-07


@verifies(
    "CO-FAIL-07",
    isolation="disruptive",
    nodes=2,
    waits="first_leader + ownership_latency + gap_processed + orphan_check_interval",
)
async def test_an_event_that_a_dead_owner_had_read_does_not_come_last(cluster: Cluster, T: SpecTime) -> None:
    job, id_, node = await _owned(cluster)
    killed = await cluster.kill(node)
    group = await _group(cluster, STATUS, job)
    await cluster.worker.runs(job)
    await cluster.groups.deliver(group, await cluster.groups.consumer_of(group, id_))
    await cluster.worker.completes(job)
    await cluster.store.is_status(job, COMPLETED, "gap_processed", since=killed)

    async def stays() -> None:
        expect((await cluster.store.job(job)).status, COMPLETED, why=f"{job.id} had completed")

    await cluster.throughout(stays, T.orphan_check_interval, "an older status that overwrites the last one")
