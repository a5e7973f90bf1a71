"""What the owner does with a job's events (seed 3, Job Distribution, steps 3 and 4): all of them, in order, alone."""

from holdfast.check.finding import Inconclusive, demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.coordinator.client import Cluster
from holdfast.conformance.coordinator.deeds import SCRIPTS, Deeds
from holdfast.conformance.coordinator.groups import JOB_QUEUES
from holdfast.conformance.coordinator.logged import all_logged
from holdfast.conformance.coordinator.messages import Job
from holdfast.conformance.coordinator.store import JOB, QUERY_LOGS
from holdfast.conformance.coordinator.wire import COMPLETED, FAILED, RUNNING
from holdfast.target.tap import Command

# Jobs that end at once, logs of one job, and events of a job on each of its channels.
_QUICK, _LOGS, _EVENTS = 50, 200, 50


@verifies("CO-EVENT-01", waits="3*event_latency", needs_hooks=[JOB])
async def test_the_record_follows_the_worker(cluster: Cluster) -> None:
    job = await cluster.jobs.inject_one()
    published = await cluster.worker.runs(job)
    await cluster.store.is_status(job, RUNNING, "event_latency", since=published)
    published = await cluster.worker.completes(job)
    record, _ = await cluster.store.is_status(job, COMPLETED, "event_latency", since=published)
    demand(record.completed_at, "completedAt, as the worker said it", "none", record.describe())


@verifies("CO-EVENT-01", waits="event_latency", needs_hooks=[JOB])
async def test_the_error_of_a_job_that_failed_is_stored(cluster: Cluster) -> None:
    job, said = await cluster.jobs.inject_one(), "out of paper"
    published = await cluster.worker.status(job, RUNNING, FAILED, error=said)
    record, _ = await cluster.store.is_status(job, FAILED, "event_latency", since=published)
    expect(record.error, said, why="the error that the worker reported")


@verifies("CO-EVENT-01", waits="batch_latency + event_latency", needs_hooks=[JOB])
async def test_of_two_reports_back_to_back_the_later_one_stays(cluster: Cluster, T: SpecTime) -> None:
    jobs = await cluster.jobs.inject(_QUICK)
    published = T.now()
    for job in jobs:
        published = await cluster.worker.status(job, RUNNING, COMPLETED)
    for job in jobs:
        await cluster.store.is_status(job, COMPLETED, "batch_latency", since=published)
    await T.sleep(T.event_latency, "an older report that is applied late")
    for job in jobs:
        expect((await cluster.store.job(job)).status, COMPLETED, why=f"the status of {job.id}, some time afterwards")


@verifies("CO-EVENT-01", waits="batch_latency", needs_hooks=[QUERY_LOGS])
async def test_all_logs_of_a_job_are_gathered_in_order(cluster: Cluster) -> None:
    job = await cluster.jobs.inject_one()
    published = await cluster.worker.logs(job, _LOGS)
    await all_logged(cluster, [job], "batch_latency", since=published)


# --- CO-EVENT-02


async def _processed(cluster: Cluster) -> Job:
    """Returns a job of which many statuses and logs, published in turn, have been processed."""
    await cluster.beats.first_of_all(cluster.nodes)
    job = await cluster.jobs.inject_one()
    published = cluster.T.now()
    for _ in range(_EVENTS):
        await cluster.worker.runs(job)
        published = await cluster.worker.logs(job)
    await cluster.groups.done([job], "batch_latency", since=published)
    return job


async def _only_reader(cluster: Cluster, job: Job) -> str:
    """Judges that one node has read both channels of a job, in one group each; returns its id."""
    readers = set[str]()
    for kind in JOB_QUEUES:
        groups = await cluster.groups.of(kind, **job.ids)
        expect(len(groups), 1, why=f"groups on {cluster.names.channel(kind, **job.ids)}")
        consumers = await cluster.groups.consumers(groups[0])
        told = " and ".join(sorted(each.name for each in consumers)) or "nobody"
        demand(len(consumers) == 1, f"one reader of {groups[0].queue}", told, "one node handles all events of a job")
        readers.add(await cluster.groups.id_of(consumers[0]) or consumers[0].name)
    demand(len(readers) == 1, "the same reader of both channels", " and ".join(sorted(readers)), job.id)
    return readers.pop()


@verifies("CO-EVENT-02", isolation="quiet", nodes=3, waits="first_leader + batch_latency")
async def test_one_node_reads_both_channels(cluster: Cluster) -> None:
    await _only_reader(cluster, await _processed(cluster))


@verifies("CO-EVENT-02", part=2, isolation="quiet", nodes=3, waits="first_leader + batch_latency")
async def test_reads_and_acknowledgements_come_from_one_node(cluster: Cluster, deeds: Deeds) -> None:
    job = await _processed(cluster)
    await deeds.tap.nothing_bypassed()
    handling = _handling(cluster, deeds, job)
    if not handling:
        raise Inconclusive(f"the tap does not show who reads the channels of {job.id}")
    nodes = {each.node: each for each in handling}
    deeds.tap.show(list(nodes.values()))
    told = "; ".join(f"{node}: {each.describe()}" for node, each in sorted(nodes.items()))
    demand(len(nodes) == 1, "one node that reads and acknowledges the job's events", told, job.id)


def _handling(cluster: Cluster, deeds: Deeds, job: Job) -> list[Command]:
    """Returns the commands that read or acknowledge a job's channels, and the scripts that name one anywhere."""
    channels = [cluster.names.channel(kind, **job.ids) for kind in JOB_QUEUES]
    naming = [
        each
        for each in deeds.tap.commands(*SCRIPTS)
        if any(channel in str(word) for channel in channels for word in each.words[1:])
    ]
    return [*deeds.touches(job), *naming]


@verifies("CO-EVENT-02", part=3, isolation="quiet", nodes=3, waits="first_leader + batch_latency", needs_hooks=[JOB])
async def test_the_reader_is_the_recorded_owner(cluster: Cluster) -> None:
    job = await _processed(cluster)
    record = await cluster.store.job(job)
    expect(await _only_reader(cluster, job), record.owner, why="who reads the job: the owner that is recorded")


# --- CO-EVENT-03


async def _published_before_the_offer(cluster: Cluster) -> tuple[Job, Moment]:
    """Offers a job whose worker has said something already; returns the job, and when it was offered."""
    job = Job()
    await cluster.worker.runs(job)
    await cluster.worker.logs(job, 2)
    await cluster.T.sleep(cluster.T.head_start, "events that are older than any owner")
    await cluster.jobs.inject(jobs=[job])
    return job, cluster.T.now()


@verifies("CO-EVENT-03", waits="head_start + batch_latency")
async def test_events_before_the_offer_are_read(cluster: Cluster) -> None:
    job, offered = await _published_before_the_offer(cluster)
    what = "what was published before the job had an owner read and acknowledged"
    await cluster.groups.done([job], "batch_latency", since=offered, what=what)
    demand(await cluster.groups.reader(job), "a reader of the job", "nobody", "it was offered")


@verifies("CO-EVENT-03", part=2, waits="head_start + batch_latency", needs_hooks=[JOB, QUERY_LOGS])
async def test_events_before_the_offer_are_stored(cluster: Cluster) -> None:
    job, offered = await _published_before_the_offer(cluster)
    await cluster.store.is_status(job, RUNNING, "batch_latency", since=offered)
    await all_logged(cluster, [job], "batch_latency", since=offered)
