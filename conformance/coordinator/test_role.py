"""Who does what (seed 1, Cluster Roles & Topology): one node leads, and every node does a follower's work."""

import contextlib
import math

from holdfast.check.finding import NotObservable, demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.coordinator.client import Cluster
from holdfast.conformance.coordinator.deeds import Deeds
from holdfast.conformance.coordinator.lock import Sample
from holdfast.conformance.coordinator.messages import Job
from holdfast.conformance.coordinator.store import ENQUEUE, SCHEDULE
from holdfast.conformance.coordinator.wire import COMPLETED, DISPATCH, PENDING, RUNNING, TIMED_OUT
from holdfast.conformance.coordinator.worker import numbers

_JOBS = 5


async def _same_value(cluster: Cluster, first: Sample) -> None:
    """Judges that the lock has the same value for lease_watch."""

    def look(seen: Sample) -> None:
        demand(seen.value == first.value, f"{first.value} all the time", seen.describe(), "all nodes are well")

    await cluster.lock.watch(cluster.T.lease_watch, "leadership that wanders", look)


@verifies("CO-ROLE-01", isolation="quiet", nodes=3, waits="first_leader + lease_watch")
async def test_one_node_leads_as_long_as_it_is_well(cluster: Cluster, T: SpecTime) -> None:
    first = await cluster.lock.led()
    since = Moment(first.moment.hi + T.tolerance, first.moment.hi + T.tolerance)
    async with contextlib.AsyncExitStack() as work:
        with contextlib.suppress(NotObservable):  # without the hook a leader without work is watched
            (await cluster.store.hooks()).need(ENQUEUE)
            await work.enter_async_context(cluster.jobs.steadily(T.steady_gap))
        await _same_value(cluster, first)
    await cluster.beats.one_leads(cluster.nodes, since=since)


@verifies(
    "CO-ROLE-01",
    part=2,
    isolation="quiet",
    nodes=3,
    waits="first_leader + lease_watch + few_out",
    needs_hooks=[ENQUEUE],
)
async def test_all_dispatches_come_from_the_node_that_took_the_lock(
    cluster: Cluster, deeds: Deeds, T: SpecTime
) -> None:
    first = await cluster.lock.led()
    async with cluster.jobs.steadily(T.steady_gap) as given:
        await T.sleep(T.lease_watch, "dispatches by nodes that do not lead")
    entries = await cluster.jobs.all_dispatched(given, "few_out", since=T.now(), owner="CO-DISP-01")
    await deeds.tap.nothing_bypassed()
    holder = deeds.claimant(first.value) or await cluster.leader_by(first.value)
    demand(holder, "the claim that took the lock", "none at the tap", "somebody leads")
    deeds.all_from(entries, [holder], "it holds the lock")


@verifies("CO-ROLE-01", part=3, isolation="disruptive", nodes=3, start="by hand", waits="first_leader + lease_watch")
async def test_nodes_that_start_on_an_empty_redis_have_one_leader(cluster: Cluster) -> None:
    since = await cluster.start()
    first, _ = await cluster.lock.taken("first_leader", since=Moment(since.lo, since.lo), what="a first leader")
    await _same_value(cluster, first)


# --- CO-ROLE-02


@verifies(
    "CO-ROLE-02",
    isolation="quiet",
    waits="renew_interval + tolerance + no_leader_watch + schedule_after_free_lock",
    needs_hooks=[ENQUEUE, SCHEDULE],
)
async def test_nothing_is_scheduled_or_dispatched_while_nobody_leads(cluster: Cluster, T: SpecTime) -> None:
    await cluster.leader()
    async with cluster.lock.held() as hold:
        await cluster.lock.nobody_leads()
        scheduled = await cluster.jobs.schedule(T.schedule_period)
        jobs = await cluster.jobs.enqueue(_JOBS)
        await T.sleep(T.no_leader_watch, "dispatches without a leader")
        for queue in (scheduled, jobs[0].queue):
            await cluster.no_entry(DISPATCH, since=Moment(0, 0), why="nobody leads", queue=queue)
        released = await hold.release()
    for job in jobs:
        await cluster.jobs.dispatched(job, "dispatch_after_free_lock", since=released)
    what = "a job of the schedule"
    await cluster.entry_in_time(DISPATCH, bound="schedule_after_free_lock", since=released, what=what, queue=scheduled)


@verifies(
    "CO-ROLE-02",
    part=2,
    isolation="quiet",
    nodes=3,
    waits="first_leader + schedule_period + schedule_watch",
    needs_hooks=[SCHEDULE],
)
async def test_a_schedule_yields_one_job_for_each_due_time(cluster: Cluster, T: SpecTime) -> None:
    await cluster.leader()
    first = Moment(T.now().hi + T.schedule_period, T.now().hi + T.schedule_period)
    queue = await cluster.jobs.schedule(T.schedule_period, first=first)
    await T.sleep_until(first, T.schedule_watch, "jobs of the schedule")
    due = math.floor((T.now().hi - first.lo) / T.schedule_period) + 1
    seen = await cluster.bus.entries(DISPATCH, queue=queue)
    expect(len(seen), due - 1, due, due + 1, why=f"dispatches of a schedule that was due {due} times")
    ids = {each.message.job_id for each in seen}
    expect(len(ids), len(seen), why="jobs of the schedule, each dispatched once")


@verifies(
    "CO-ROLE-02", part=3, isolation="quiet", waits="renew_interval + tolerance + dispatch_scan", needs_hooks=[ENQUEUE]
)
async def test_jobs_stay_pending_while_nobody_leads(cluster: Cluster, T: SpecTime) -> None:
    await cluster.leader()
    async with cluster.lock.held():
        await cluster.lock.nobody_leads()
        jobs = await cluster.jobs.enqueue(_JOBS)
        await T.sleep(2 * T.dispatch_scan + T.tolerance, "a scan without a leader")
        for job in jobs:
            expect((await cluster.store.job(job)).status, PENDING, why=f"the status of {job.id} while nobody leads")


# --- CO-ROLE-03


async def _to_time_out(cluster: Cluster) -> Job:
    """Returns a job with a timeout that has been dispatched."""
    since = cluster.T.now()
    (job,) = await cluster.jobs.enqueue(times_out=cluster.T.job_timeout)
    job, _ = await cluster.jobs.dispatched(job, "few_out", since=since, owner="CO-DISP-01")
    return job


@verifies("CO-ROLE-03", isolation="quiet", waits="first_leader + few_out + 2*timeout_noticed", needs_hooks=[ENQUEUE])
async def test_a_silent_job_is_marked_as_timed_out_in_time(cluster: Cluster, T: SpecTime) -> None:
    await cluster.leader()
    job = await _to_time_out(cluster)
    running = await cluster.worker.runs(job)

    async def marked() -> bool:
        return (await cluster.store.job(job)).status == TIMED_OUT

    give_up = 2 * (T.timeout_noticed + T.tolerance)
    _, seen = await T.until(marked, give_up=give_up, since=running, what=f"{job.id} to be marked as timed out")
    T.at_least("job_timeout", since=running, seen=seen, tolerance="tolerance", what="the mark")
    T.at_most("timeout_noticed", since=running, seen=seen, tolerance="tolerance", what="the mark")


@verifies(
    "CO-ROLE-03",
    isolation="quiet",
    waits="first_leader + few_out + renew_interval + tolerance + event_latency + no_leader_watch",
    needs_hooks=[ENQUEUE],
)
async def test_no_job_times_out_while_nobody_leads(cluster: Cluster, T: SpecTime) -> None:
    await cluster.leader()
    job = await _to_time_out(cluster)
    async with cluster.lock.held():
        await cluster.lock.nobody_leads()
        running = await cluster.worker.runs(job)
        with cluster.context.arranging("CO-EVENT-01"):
            await cluster.store.is_status(job, RUNNING, "event_latency", since=running)

        async def still() -> None:
            expect((await cluster.store.job(job)).status, RUNNING, why="nobody leads, so nobody watches timeouts")

        await cluster.throughout(still, T.no_leader_watch, "timeouts without a leader")


# --- CO-ROLE-04


@verifies("CO-ROLE-04", isolation="quiet", nodes=1, waits="first_leader + load_shown")
async def test_the_only_node_leads_and_owns(cluster: Cluster) -> None:
    node = cluster.alone
    await cluster.leader()
    since = cluster.T.now()
    await cluster.jobs.inject()
    what = "a heartbeat with jobCount 1"
    await cluster.beats.shows(node, lambda beat: beat.job_count == 1, "load_shown", since=since, what=what)


@verifies("CO-ROLE-04", part=2, isolation="quiet", nodes=1, waits="first_leader + batch_latency")
async def test_the_only_node_reads_the_events_of_its_job(cluster: Cluster) -> None:
    await cluster.leader()
    job = await cluster.jobs.inject_one()
    published = await cluster.worker.status(job, RUNNING, COMPLETED)
    await cluster.groups.done([job], "batch_latency", since=published)
    expect(await cluster.groups.ever_read(job), {await cluster.id_of(cluster.alone)}, why="who has read the job")


@verifies("CO-ROLE-04", part=3, isolation="quiet", nodes=1, waits="first_leader + batch_latency")
async def test_the_only_node_records_the_events_of_its_job(cluster: Cluster) -> None:
    await cluster.leader()
    job = await cluster.jobs.inject_one()
    published = await cluster.worker.runs(job)
    record, _ = await cluster.store.is_status(job, RUNNING, "batch_latency", since=published)
    expect(record.owner, await cluster.id_of(cluster.alone), why="the owner that is recorded")
    published = await cluster.worker.completes(job)
    await cluster.store.is_status(job, COMPLETED, "batch_latency", since=published)


# Offers of the catalogue's two rounds.
_MANY, _MORE = 150, 60


@verifies("CO-ROLE-04", part=4, isolation="quiet", nodes=3, waits="first_leader + 2*shares_shown")
async def test_every_node_takes_its_part_the_leader_included(cluster: Cluster, T: SpecTime) -> None:
    await cluster.leader()
    await cluster.beats.first_of_all(cluster.nodes)
    _, last = await cluster.jobs.inject_at(_MANY, T.count("assign_rate"))
    await _all_own(cluster, cluster.nodes, last)


@verifies("CO-ROLE-04", part=5, isolation="disruptive", nodes=2, waits="first_leader + start_up + 2*shares_shown")
async def test_a_node_that_starts_later_takes_its_part(cluster: Cluster, T: SpecTime) -> None:
    await cluster.leader()
    third, _ = await cluster.start_new()
    await cluster.beats.first_of_all([third])
    _, last = await cluster.jobs.inject_at(_MORE, T.count("assign_rate"))
    await _all_own(cluster, [third], last)


async def _all_own(cluster: Cluster, nodes: list[str], since: Moment) -> None:
    for node in nodes:
        what = f"a heartbeat of {node} with jobs"
        await cluster.beats.shows(node, lambda beat: bool(beat.job_count), "shares_shown", since=since, what=what)


# --- CO-ROLE-05


async def _processed(cluster: Cluster, since: Moment | None = None) -> Job:
    """Judges that a fresh job gets a reader and its events are processed; returns the job."""
    job = await cluster.jobs.inject_one()
    await cluster.worker.runs(job)
    published = await cluster.worker.logs(job, 3)
    await cluster.groups.done([job], "batch_latency", since=since or published)
    await cluster.groups.has_reader([job], "batch_latency", since=since or published)
    return job


@verifies("CO-ROLE-05", isolation="quiet", waits="first_leader + renew_interval + tolerance + batch_latency")
async def test_jobs_are_won_and_processed_without_a_leader(cluster: Cluster) -> None:
    await cluster.leader()
    async with cluster.lock.held():
        await cluster.lock.nobody_leads()
        await _processed(cluster)


@verifies("CO-ROLE-05", part=2, isolation="quiet", waits="first_leader + renew_interval + tolerance + batch_latency")
async def test_jobs_are_recorded_without_a_leader(cluster: Cluster) -> None:
    await cluster.leader()
    async with cluster.lock.held():
        await cluster.lock.nobody_leads()
        job = await _processed(cluster)
        record = await cluster.store.job(job)
        expect(record.status, RUNNING, why="the status that was published")
        reader = await cluster.groups.reader(job)
        listed = job.id in await cluster.store.jobs_of(reader)
        demand(listed, f"{job.id} among the jobs of {reader}", "not there", "it reads the job")
        expect(numbers(await cluster.store.logs(job)), [1, 2, 3], why="the logs that were published")


@verifies("CO-ROLE-05", part=3, isolation="disruptive", start="by hand", waits="start_up + batch_latency")
async def test_jobs_are_won_before_the_first_leader(cluster: Cluster) -> None:
    async with cluster.lock.held():
        await cluster.start()
        first = await cluster.beats.first_of_all(cluster.nodes)
        await _processed(cluster, max((beat.at for beat in first.values()), key=lambda at: at.hi))


@verifies("CO-ROLE-05", part=4, isolation="disruptive", nodes=3, waits="first_leader + leader_takeover")
async def test_events_are_processed_between_two_leaders(cluster: Cluster, T: SpecTime) -> None:
    leader = await cluster.leader()
    old = await cluster.lock.value()
    leading = await cluster.id_of(leader)
    by_reader = await cluster.jobs.by_reader(await cluster.jobs.running(6))
    job = next(jobs[0] for reader, jobs in by_reader.items() if reader != leading)
    killed = await cluster.kill(leader)
    logs, sent = 0, killed
    while (await cluster.lock.value()) in ("", old):
        sent = await cluster.worker.logs(job)
        await cluster.groups.done([job], "event_latency", since=sent)
        logs += 1
        demand(sent.lo < killed.hi + cluster.never("leader_takeover"), "another leader", "none", "after the kill")
        await T.sleep_until(sent, T.steady_gap, "the next log")
    demand(logs >= 2, "logs while nobody led", f"{logs}", "between the kill and the takeover")
