"""A leader that dies in the middle of a batch (seed 3, Step 1; 7, Leader Crashes)."""

from collections import Counter
from dataclasses import dataclass

from holdfast.check.finding import Inconclusive, demand
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.coordinator.bus import Entry
from holdfast.conformance.coordinator.client import Cluster
from holdfast.conformance.coordinator.messages import Job
from holdfast.conformance.coordinator.store import ENQUEUE
from holdfast.conformance.coordinator.wire import ASSIGNED, DISPATCH

_BATCH, _AT_LEAST, _AT_MOST = 500, 50, 450
_ROUNDS = 3
# Seconds between two looks at how far the leader has got.
_LOOK = 0.001
_WAITS = "first_leader + 3*(due_later + leader_takeover) + batch_repaired"


@dataclass(frozen=True)
class Broken:
    """A batch whose leader was killed: its jobs, when that was, and the nodes that are left."""

    jobs: list[Job]
    queue: str
    killed: Moment
    alive: list[str]


async def _round(cluster: Cluster) -> Broken | None:
    """Kills the leader while it dispatches a batch; None if it was done, or had hardly begun."""
    leader, queue = await cluster.leader(), cluster.jobs.new_queue()
    due = Moment(cluster.T.now().lo + cluster.T.due_later, cluster.T.now().hi + cluster.T.due_later)
    enqueueing = cluster.beside(cluster.jobs.enqueue(_BATCH, queue=queue, due=due))

    async def begun() -> bool:
        return await cluster.bus.length(DISPATCH, queue=queue) >= _AT_LEAST

    with cluster.context.arranging("CO-DISP-01"):
        give_up = cluster.T.due_later + cluster.never("many_out")
        await cluster.T.until(begun, give_up=give_up, what=f"{_AT_LEAST} of {_BATCH} dispatches", every=_LOOK)
    killed = await cluster.kill(leader)
    sent = await cluster.bus.length(DISPATCH, queue=queue)
    jobs = await enqueueing
    cluster.context.transcript.note(f"{leader} was killed after {sent} dispatches")
    if sent <= _AT_MOST:
        return Broken(jobs, queue, killed, cluster.others(leader))
    await cluster.restart(leader)
    return None


async def _broken(cluster: Cluster) -> Broken:
    for _ in range(_ROUNDS):
        if found := await _round(cluster):
            return found
    raise Inconclusive(f"in {_ROUNDS} rounds the leader was never killed between two dispatches of a batch")


async def _dispatched(cluster: Cluster, broken: Broken) -> list[Entry]:
    """Waits until each job of the batch has been dispatched; returns all dispatches."""
    since = broken.killed
    return await cluster.jobs.all_dispatched(broken.jobs, "batch_repaired", since=since, owner="CO-DISP-03")


@verifies("CO-DISP-03", isolation="disruptive", nodes=3, waits=_WAITS, needs_hooks=[ENQUEUE])
async def test_a_crash_in_mid_batch_repeats_and_drops_no_dispatch(cluster: Cluster, T: SpecTime) -> None:
    broken = await _broken(cluster)
    await _dispatched(cluster, broken)
    wanted = {job.id for job in broken.jobs}

    async def offered() -> bool:
        return wanted <= {each.message.job_id for each in await cluster.bus.entries(ASSIGNED)}

    what = f"an assignment of each of {_BATCH} jobs"
    with cluster.context.collect():
        await cluster.comes(offered, "batch_repaired", since=broken.killed, what=what)
    await T.sleep(2 * T.dispatch_scan, "a second dispatch of a job")
    seen = Counter(each.message.job_id for each in await cluster.bus.entries(DISPATCH, queue=broken.queue))
    twice = [job_id for job_id, count in seen.items() if count > 1]
    told = f"{sum(seen.values())} of {len(seen)} jobs"
    if twice:
        told += f", {len(twice)} of them again, such as {', '.join(twice[:2])}"
    demand(not twice and len(seen) == _BATCH, f"{_BATCH} dispatches of {_BATCH} jobs", told, "its leader died")


@verifies("CO-DISP-03", part=2, isolation="disruptive", nodes=3, waits=_WAITS, needs_hooks=[ENQUEUE])
async def test_after_a_crash_in_mid_batch_every_job_is_read(cluster: Cluster) -> None:
    broken = await _broken(cluster)
    sent = {each.message.job_id: each.message.history_id for each in await _dispatched(cluster, broken)}
    jobs = [Job(job.id, sent[job.id], job.queue) for job in broken.jobs]
    ids = [await cluster.id_of(node) for node in broken.alive]
    what = f"a reader that is alive of each of {_BATCH} jobs"
    await cluster.jobs.have_reader(jobs, "batch_repaired", since=broken.killed, among=ids, what=what)


@verifies("CO-DISP-03", part=3, isolation="disruptive", nodes=3, waits=_WAITS, needs_hooks=[ENQUEUE])
async def test_after_a_crash_in_mid_batch_every_job_has_an_owner(cluster: Cluster) -> None:
    broken = await _broken(cluster)
    waiting, ids = list(broken.jobs), {await cluster.id_of(node) for node in broken.alive}

    async def owned() -> bool:
        while waiting and (await cluster.store.job(waiting[0])).owner in ids:
            waiting.pop(0)
        return not waiting

    what = f"an owner that is alive of each of {_BATCH} jobs"
    await cluster.comes(owned, "batch_repaired", since=broken.killed, what=what)
