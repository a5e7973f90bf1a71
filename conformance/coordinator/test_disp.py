"""The leader dispatches each due job once, and offers its ownership (seed 3, Step 1)."""

from collections import Counter

from holdfast.check.finding import demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.coordinator.base import of_job
from holdfast.conformance.coordinator.bus import Entry
from holdfast.conformance.coordinator.client import Cluster
from holdfast.conformance.coordinator.messages import Job
from holdfast.conformance.coordinator.store import ENQUEUE
from holdfast.conformance.coordinator.wire import ASSIGNED, DISPATCH, JOB_STATUSES

_JOBS, _OFFERED = 50, 100
# Statuses of a job that is pending no more.
_GONE_OUT = JOB_STATUSES[3:]


def _each_once(entries: list[Entry], jobs: list[Job], why: str) -> None:
    """Judges that there is one dispatch for each of these jobs, and none for another."""
    seen = Counter(entry.message.job_id for entry in entries)
    wrong = [f"{job_id} {count} times" for job_id, count in seen.items() if count != 1]
    told = ", ".join(wrong[:3]) or "each once"
    demand(not wrong, "each job dispatched once", f"{len(wrong)} jobs more than once: {told}", why)
    expect(set(seen) == {job.id for job in jobs}, True, why=f"whether exactly the {len(jobs)} jobs are dispatched")


async def _sent(cluster: Cluster, count: int) -> tuple[list[Job], Moment]:
    """Enqueues so many jobs of one queue and waits until all are dispatched; returns them, and when the last came."""
    await cluster.leader()
    jobs = await cluster.jobs.enqueue(count)
    since = cluster.T.now()
    await cluster.jobs.all_dispatched(jobs, "many_out", since=since, owner="CO-DISP-01")
    return jobs, since


@verifies("CO-DISP-01", isolation="quiet", waits="first_leader + many_out + redispatch_watch", needs_hooks=[ENQUEUE])
async def test_each_pending_job_is_dispatched_once(cluster: Cluster, T: SpecTime) -> None:
    jobs, _ = await _sent(cluster, _JOBS)
    await T.sleep(T.redispatch_watch, "a second dispatch of a job")
    _each_once(await cluster.bus.entries(DISPATCH, queue=jobs[0].queue), jobs, "ten scans after the last of them")


@verifies("CO-DISP-01", isolation="quiet", waits="first_leader + due_later + 2*dispatch_scan", needs_hooks=[ENQUEUE])
async def test_a_job_that_is_due_later_goes_out_then(cluster: Cluster, T: SpecTime) -> None:
    await cluster.leader()
    asked = T.now()
    due = Moment(asked.lo + T.due_later, asked.hi + T.due_later)
    (job,) = await cluster.jobs.enqueue(due=due)
    give_up = T.due_later + 2 * (T.dispatch_scan + T.tolerance)
    entry = await cluster.entry(
        DISPATCH, of_job(job.id), give_up=give_up, since=asked, what=f"a dispatch of {job.id}", queue=job.queue
    )
    T.at_least("due_later", since=asked, seen=entry.at, tolerance="tolerance", what="the dispatch of a job due later")
    T.at_most("dispatch_scan", since=due, seen=entry.at, tolerance="tolerance", what="its dispatch, once it is due")


@verifies("CO-DISP-01", part=2, isolation="quiet", waits="first_leader + many_out", needs_hooks=[ENQUEUE])
async def test_a_dispatched_job_is_pending_no_more(cluster: Cluster) -> None:
    jobs, since = await _sent(cluster, _JOBS)
    for job in jobs:
        what = f"the record of {job.id} with a status from {_GONE_OUT[0]} on"
        await cluster.store.becomes(job, lambda seen: seen.status in _GONE_OUT, "many_out", since=since, what=what)


@verifies("CO-DISP-02", isolation="quiet", waits="first_leader + many_out + redispatch_watch", needs_hooks=[ENQUEUE])
async def test_each_dispatch_comes_with_one_offer_of_the_same_execution(cluster: Cluster, T: SpecTime) -> None:
    jobs, since = await _sent(cluster, _OFFERED)
    wanted = {job.id for job in jobs}

    async def offered() -> bool:
        return wanted <= {each.message.job_id for each in await cluster.bus.entries(ASSIGNED)}

    await cluster.comes(offered, "many_out", since=since, what=f"an assignment of each of {len(jobs)} jobs")
    await T.sleep(2 * T.dispatch_scan, "a second offer")
    offers = [each for each in await cluster.bus.entries(ASSIGNED) if each.message.job_id in wanted]
    sent = {each.message.job_id: each for each in await cluster.bus.entries(DISPATCH, queue=jobs[0].queue)}
    counts = Counter(each.message.job_id for each in offers)
    twice = [job_id for job_id, count in counts.items() if count > 1]
    demand(
        not twice, "one assignment for each dispatch", f"more of {', '.join(twice[:3])}", "none was dispatched twice"
    )
    for offer in offers:
        job_id, given = offer.message.job_id, sent[offer.message.job_id]
        execution = given.message.text("executionId")
        demand(execution, "an execution in the dispatch", "none", given.describe())
        expect(offer.message.history_id, execution, why=f"historyId of the offer of {job_id}: its dispatch's execution")
        demand(execution != job_id, "an id of the execution, not of the job", execution, given.describe())
    ids = {offer.message.history_id for offer in offers}
    expect(len(ids), len(offers), why="different historyIds of as many executions")
