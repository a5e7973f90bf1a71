"""Work that came while no coordinator ran is taken up (seed 7, All Coordinators Down), and no queue is cut (seed 2)."""

from collections import Counter

from holdfast.check.finding import demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.coordinator import messages
from holdfast.conformance.coordinator.base import of_job
from holdfast.conformance.coordinator.bus import post
from holdfast.conformance.coordinator.client import Cluster
from holdfast.conformance.coordinator.deeds import Deeds
from holdfast.conformance.coordinator.ghost import silent_id
from holdfast.conformance.coordinator.messages import Job
from holdfast.conformance.coordinator.store import CANCEL_JOB, ENQUEUE, SCHEDULE, SEED_JOB
from holdfast.conformance.coordinator.wire import ASSIGNED, CANCEL, DISPATCH, HANDOFF, SHUTDOWN, encode

_QUEUED, _INJECTED, _HANDED_OFF = 20, 10, 5
# Entries that are written in one step.
_CHUNK, _FEW = 1000, 5


@verifies(
    "CO-FAIL-06",
    isolation="disruptive",
    nodes=1,
    waits="first_leader + outage_length + restart_dispatch",
    needs_hooks=[ENQUEUE, SCHEDULE],
)
async def test_jobs_and_schedules_of_an_outage_are_dispatched(cluster: Cluster, T: SpecTime) -> None:
    await cluster.leader()
    killed = await cluster.kill_all()
    jobs = await cluster.jobs.enqueue(_QUEUED)
    due = Moment(killed.lo + T.due_in_gap, killed.hi + T.due_in_gap)
    scheduled = await cluster.jobs.schedule(T.gap_period, first=due)
    await T.sleep_until(killed, T.outage_length, "the outage")
    started = await cluster.restart_all()
    await cluster.jobs.all_dispatched(jobs, "restart_dispatch", since=started, owner="CO-FAIL-06")
    what = "the job of a schedule that fell due while no node ran"
    await cluster.entry_in_time(DISPATCH, bound="restart_dispatch", since=started, what=what, queue=scheduled)
    await T.sleep(2 * T.dispatch_scan, "a second dispatch of a job")
    counts = Counter(each.message.job_id for each in await cluster.bus.entries(DISPATCH, queue=jobs[0].queue))
    twice = [job_id for job_id, count in counts.items() if count > 1]
    demand(not twice, "each job dispatched once", f"{', '.join(twice[:3])} more than once", "after the outage")


@verifies("CO-FAIL-06", isolation="disruptive", nodes=1, start="by hand", waits="first_jobs")
async def test_offers_from_before_the_first_start_are_taken(cluster: Cluster) -> None:
    await cluster.jobs.inject(_INJECTED)
    started = await cluster.start()
    what = f"jobCounts that add up to {_INJECTED}, offered before the first start"
    await cluster.beats.add_up(cluster.nodes, _INJECTED, "first_jobs", since=started, what=what)


@verifies(
    "CO-FAIL-06",
    part=2,
    isolation="disruptive",
    nodes=1,
    start="by hand",
    waits="first_jobs",
    needs_hooks=[SEED_JOB],
)
async def test_handoffs_from_before_the_first_start_are_taken(cluster: Cluster) -> None:
    gone = silent_id()
    jobs = [await cluster.store.seed(gone) for _ in range(_HANDED_OFF)]
    await cluster.bus.publish_all([post(HANDOFF, messages.handoff(job, SHUTDOWN, from_node=gone)) for job in jobs])
    await cluster.jobs.inject(_INJECTED)
    started = await cluster.start()
    ids = {await cluster.id_of(node) for node in cluster.nodes}
    for job in jobs:
        what = f"a node that owns {job.id}, handed off before the first start"
        await cluster.store.becomes(job, lambda seen: seen.owner in ids, "first_jobs", since=started, what=what)


# --- CO-FAIL-09


async def _first(cluster: Cluster, queue: str) -> str:
    """Returns the id of the first entry of a queue of jobs."""
    found = await cluster.bus.redis.xrange(cluster.names.channel(DISPATCH, queue=queue), count=1)
    return str(found[0][0]) if found else "none"


@verifies("CO-FAIL-09", isolation="quiet", waits="first_leader + 2*few_out", needs_hooks=[ENQUEUE])
async def test_a_long_queue_that_nobody_reads_stays_whole(cluster: Cluster, T: SpecTime) -> None:
    await cluster.leader()
    size, queue = T.count("backlog_size"), cluster.jobs.new_queue()
    channel = cluster.names.channel(DISPATCH, queue=queue)
    for done in range(0, size, _CHUNK):
        work = (messages.assigned(Job(queue=queue)) for _ in range(min(_CHUNK, size - done)))
        await cluster.bus.together(*(("XADD", channel, "*", "data", encode(each)) for each in work))
    before, since = await _first(cluster, queue), T.now()
    (job,) = await cluster.jobs.enqueue(queue=queue)
    await cluster.jobs.dispatched(job, "few_out", since=since, owner="CO-DISP-01")
    expect(await cluster.bus.length(DISPATCH, queue=queue), size + 1, why=f"entries of {channel}, which nobody reads")
    expect(await _first(cluster, queue), before, why=f"the first entry of {channel}")


async def _written_by_nodes(cluster: Cluster, T: SpecTime) -> None:
    """Lets nodes write to their queues: dispatches and offers, and as far as hooks allow a cancel and a handoff."""
    since = T.now()
    jobs = await cluster.jobs.enqueue(_FEW)
    await cluster.jobs.all_dispatched(jobs, "many_out", since=since, owner="CO-DISP-01")
    give_up = cluster.never("many_out")
    with cluster.context.arranging("CO-DISP-02"):
        await cluster.entry(ASSIGNED, of_job(jobs[-1].id), give_up=give_up, since=since, what="an assignment")
    if await cluster.store.has(CANCEL_JOB):
        asked = await cluster.jobs.cancel(jobs[0])
        with cluster.context.arranging("CO-CHAN-02"):
            await cluster.entry(CANCEL, of_job(jobs[0].id), give_up=give_up, since=asked, what="a cancel")
    if await cluster.store.has(SEED_JOB):
        orphan = await cluster.store.seed(silent_id())
        with cluster.context.arranging("CO-CRASH-01"):
            give_up = 2 * (T.crash_handoff + T.tolerance)
            await cluster.entry(HANDOFF, of_job(orphan.id), give_up=give_up, since=since, what="a handoff")


@verifies(
    "CO-FAIL-09", part=2, isolation="quiet", waits="first_leader + many_out + crash_handoff", needs_hooks=[ENQUEUE]
)
async def test_no_node_cuts_a_queue(cluster: Cluster, deeds: Deeds, T: SpecTime) -> None:
    await cluster.leader()
    await _written_by_nodes(cluster, T)
    queues = [cluster.names.pattern(kind) for kind in (DISPATCH, CANCEL, ASSIGNED, HANDOFF)]
    cuts = [each for each in deeds.trims(*queues) if each.name != "XDEL"]
    await deeds.of_nobody_else(cuts, (), "commands that cut a queue", "entries that nobody has read would be lost")
