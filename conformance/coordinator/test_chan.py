"""The channels (seed 2, Communication Channels): queues for jobs, one group for all coordinators."""

from collections.abc import Sequence
from typing import Any

from holdfast.check.finding import demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.coordinator.base import of_job
from holdfast.conformance.coordinator.bus import Entry
from holdfast.conformance.coordinator.client import Cluster
from holdfast.conformance.coordinator.groups import JOB_QUEUES, Group
from holdfast.conformance.coordinator.leaving import Leaving
from holdfast.conformance.coordinator.messages import Job
from holdfast.conformance.coordinator.store import CANCEL_JOB, ENQUEUE
from holdfast.conformance.coordinator.wire import ACK, ASSIGNED, CANCEL, COMPETING, DISPATCH, HANDOFF, RUNNING
from holdfast.conformance.coordinator.worker import numbers


async def _leads(cluster: Cluster) -> None:
    """Waits until somebody leads, so that what is enqueued can go out at once."""
    await cluster.lock.led()


@verifies("CO-CHAN-01", waits="first_leader + few_out", needs_hooks=[ENQUEUE])
async def test_each_job_goes_out_once_on_the_channel_of_its_queue(cluster: Cluster, T: SpecTime) -> None:
    await _leads(cluster)
    since = T.now()
    jobs = [*await cluster.jobs.enqueue(), *await cluster.jobs.enqueue()]
    for job in jobs:
        what = f"an entry on {cluster.names.channel(DISPATCH, queue=job.queue)}"
        entry = await cluster.entry_in_time(DISPATCH, bound="few_out", since=since, what=what, queue=job.queue)
        expect(entry.message.job_id, job.id, why="the job of that queue")
    for job in jobs:
        expect(await cluster.bus.length(DISPATCH, queue=job.queue), 1, why="entries for one job of one queue")
        delivered = [await _read_all(cluster, job, consumer) for consumer in ("first", "second")]
        expect(sorted(delivered), [0, 1], why="deliveries of the entry to two workers of one group")
        others = [each for each in await cluster.bus.all_entries(DISPATCH) if each.message.job_id == job.id]
        expect(len(others), 1, why=f"dispatch entries of {job.id} on all channels")


async def _read_all(cluster: Cluster, job: Job, consumer: str) -> int:
    """Reads a dispatch channel as one worker of the group; returns how many entries it was given."""
    queue = cluster.names.channel(DISPATCH, queue=job.queue)
    if not await cluster.groups.of(DISPATCH, queue=job.queue):
        await cluster.bus.ask("XGROUP", "CREATE", queue, "workers", "0")
    (group, *_) = await cluster.groups.of(DISPATCH, queue=job.queue)
    read: Any = await cluster.bus.ask("XREADGROUP", "GROUP", group.name, consumer, "COUNT", "10", "STREAMS", queue, ">")
    return len(read[0][1]) if read else 0


@verifies("CO-CHAN-02", waits="first_leader + few_out + 2*batch_latency", needs_hooks=[ENQUEUE, CANCEL_JOB])
async def test_a_cancel_goes_out_for_the_job_that_it_names(cluster: Cluster, T: SpecTime) -> None:
    await _leads(cluster)
    since, jobs = T.now(), list[Job]()
    for given in await cluster.jobs.enqueue(2):
        jobs.append((await cluster.jobs.dispatched(given, "few_out", since=since, owner="CO-CHAN-01"))[0])
    running = await cluster.worker.runs(*jobs)
    await cluster.groups.done(jobs, "batch_latency", since=running, owner="CO-CHAN-04")
    cancelled, other = jobs
    asked = await cluster.jobs.cancel(cancelled)
    what = f"a cancel of {cancelled.id}"
    await cluster.entry_in_time(CANCEL, of_job(cancelled.id), bound="batch_latency", since=asked, what=what)
    await T.sleep(T.dispatch_scan + T.tolerance, "a second cancel")
    seen = await cluster.found(CANCEL, of_job(cancelled.id))
    expect(len(seen), 1, why="cancels of a job that was cancelled once")
    await cluster.no_entry(CANCEL, of_job(other.id), since=Moment(0, 0), why="it was not cancelled")


# --- CO-CHAN-03


async def _one_group_each(cluster: Cluster) -> dict[str, Group]:
    """Judges that each competing queue has one group; returns both by the kind of queue."""
    return {kind: await cluster.groups.the_one(kind) for kind in COMPETING}


def _given(group: Group) -> int:
    """Returns how many entries the group has been given."""
    return group.length - group.undelivered if group.entries_read is None else group.entries_read


_OFFERS = 30


@verifies("CO-CHAN-03", isolation="quiet", nodes=3, waits="first_leader + ownership_latency")
async def test_all_coordinators_are_one_group(cluster: Cluster) -> None:
    await cluster.beats.first_of_all(cluster.nodes)
    before = await _one_group_each(cluster)
    jobs = await cluster.jobs.inject(_OFFERS)
    offered = cluster.T.now()
    await cluster.worker.runs(*jobs)
    await cluster.groups.has_reader(jobs, "ownership_latency", since=offered)
    after = await _one_group_each(cluster)
    expect(_given(after[ASSIGNED]) - _given(before[ASSIGNED]), _OFFERS, why="entries that the group was given")
    for job in jobs:
        readers = await cluster.groups.ever_read(job)
        demand(len(readers) == 1, "one reader of each job", f"{' and '.join(sorted(readers))}", job.id)


_HANDED = 20


@verifies("CO-CHAN-03", part=2, isolation="disruptive", nodes=3, waits="first_leader + 3*load_shown + clean_drain")
async def test_each_handoff_reaches_one_coordinator(cluster: Cluster) -> None:
    node = cluster.nodes[0]
    await cluster.beats.first_of_all(cluster.nodes)
    before = await cluster.groups.the_one(HANDOFF)
    crowd = await cluster.jobs.at_least(node, _HANDED)
    leaving = cluster.leave(node)
    await leaving.ends()
    after = await cluster.groups.the_one(HANDOFF)
    written = await cluster.found(HANDOFF, since=leaving.begun)
    expect(_given(after) - _given(before), len(written), why="entries that the group was given, of those written")
    await _one_ack_each(leaving, crowd.count)


async def _one_ack_each(leaving: Leaving, count: int) -> None:
    acked = [each.message.job_id for each in await leaving.acks()]
    expect(len(set(acked)), count, why="jobs that were acknowledged, of those that the node counted")
    expect(len(acked), count, why="ACKs, one for each job")


# --- CO-CHAN-04


@verifies("CO-CHAN-04", waits="2*claim_latency + 2*event_latency")
async def test_the_winner_reads_both_channels_of_the_job(cluster: Cluster) -> None:
    nobodys = Job()
    await cluster.worker.runs(nobodys)
    await cluster.worker.logs(nobodys)
    since = cluster.T.now()
    job = await cluster.jobs.inject_one()

    async def both() -> bool:
        return all([await cluster.groups.of(kind, **job.ids) for kind in JOB_QUEUES])

    await cluster.comes(both, "claim_latency", since=since, what="a group on both channels of the job")
    published = await cluster.worker.logs(job, 3)
    await cluster.groups.done([job], "event_latency", since=published, what="the logs read and acknowledged")
    published = await cluster.worker.runs(job)
    await cluster.groups.done([job], "event_latency", since=published, what="the status read and acknowledged")
    readers = await cluster.groups.ever_read(job)
    demand(len(readers) == 1, "one reader of both channels", f"{' and '.join(sorted(readers))}", job.id)
    await _reads_both(cluster, job)
    for group in await cluster.groups.of_job(nobodys):
        expect(
            _given(group), 0, why=f"entries of {group.queue} that were given to somebody; nobody was offered the job"
        )


async def _reads_both(cluster: Cluster, job: Job) -> None:
    for kind in JOB_QUEUES:
        for group in await cluster.groups.of(kind, **job.ids):
            consumers = await cluster.groups.consumers(group)
            demand(consumers, f"a consumer of {group.queue}", "none", "the owner reads both channels")


@verifies("CO-CHAN-04", part=2, waits="claim_latency + 2*event_latency")
async def test_what_the_winner_reads_is_stored_and_nothing_else(cluster: Cluster) -> None:
    nobodys, job = Job(), await cluster.jobs.inject_one()
    await cluster.worker.runs(nobodys)
    await cluster.worker.logs(nobodys)
    published = await cluster.worker.logs(job, 3)

    async def logged() -> bool:
        return numbers(await cluster.store.logs(job)) == [1, 2, 3]

    await cluster.comes(logged, "event_latency", since=published, what="the three logs in the store")
    published = await cluster.worker.runs(job)
    await cluster.store.is_status(job, RUNNING, "event_latency", since=published)
    expect(await cluster.store.logs(nobodys), [], why="logs of a job that nobody was offered")
    expect((await cluster.store.job(nobodys)).status == RUNNING, False, why="nobody was offered the job")


# --- CO-CHAN-06


def _in_form(entries: Sequence[Entry], *members: str) -> None:
    """Judges that each entry is a JSON object in the field `data`, with these members spelled so."""
    for entry in entries:
        fields = ", ".join(sorted(entry.fields))
        demand("data" in entry.fields, "a field data", f"fields {fields}", entry.channel)
        demand(entry.message.members is not None, "a JSON object in data", entry.message.said, entry.channel)
        names = set(entry.message.members or {})
        for member in members:
            demand(member in names, f"a member {member}", ", ".join(sorted(names)), entry.channel)


@verifies("CO-CHAN-06", isolation="quiet", waits="first_leader + few_out + heartbeat_interval", needs_hooks=[ENQUEUE])
async def test_dispatches_offers_and_heartbeats_are_json_in_data(cluster: Cluster, T: SpecTime) -> None:
    await _leads(cluster)
    since = T.now()
    (job,) = await cluster.jobs.enqueue()
    dispatch = await cluster.entry_in_time(DISPATCH, bound="few_out", since=since, what="a dispatch", queue=job.queue)
    offer = await cluster.entry_in_time(ASSIGNED, bound="few_out", since=since, what="an offer")
    _in_form([dispatch, offer], "jobId")
    await T.sleep_until(since, T.heartbeat_interval, "a heartbeat of every node")
    beats = await cluster.bus.entries("coordinator_heartbeat")
    demand(beats, "heartbeats", "none", "every node beats")
    _in_form(beats, "nodeId")


@verifies("CO-CHAN-06", part=2, isolation="disruptive", nodes=1, waits="first_leader + load_shown + first_offer")
async def test_handoffs_are_json_in_data(cluster: Cluster) -> None:
    await cluster.jobs.owned(1)
    leaving = cluster.leave(cluster.alone)
    with cluster.context.arranging("CO-DRAIN-04"):
        give_up = cluster.never("first_offer")
        entry = await cluster.entry(HANDOFF, give_up=give_up, since=leaving.begun, what="a handoff")
    _in_form([entry], "jobId", "reason")


@verifies("CO-CHAN-06", part=3, isolation="disruptive", nodes=2, waits="first_leader + 2*load_shown + claim_latency")
async def test_acks_are_json_in_data(cluster: Cluster) -> None:
    node = cluster.nodes[0]
    await cluster.beats.first_of_all(cluster.nodes)
    await cluster.jobs.at_least(node, 1)
    leaving = cluster.leave(node)
    with cluster.context.arranging("CO-TAKE-03"):
        give_up, topic = cluster.never("claim_latency"), await cluster.id_of(node)
        entry = await cluster.entry(ACK, give_up=give_up, since=leaving.begun, what="an ACK", nodeId=topic)
    _in_form([entry], "jobId", "newOwner")
