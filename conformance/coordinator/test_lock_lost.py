"""A leader that has lost the lock (seed 1, Leader Election): it does not act as leader, and it goes on as follower."""

from collections.abc import Sequence

import pytest

from holdfast.check.faults import Faults
from holdfast.check.finding import demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.coordinator.bus import Entry
from holdfast.conformance.coordinator.client import Cluster
from holdfast.conformance.coordinator.deeds import Deeds
from holdfast.conformance.coordinator.lock import Hold
from holdfast.conformance.coordinator.messages import Job
from holdfast.conformance.coordinator.store import ENQUEUE
from holdfast.conformance.coordinator.wire import ASSIGNED, DISPATCH, HANDOFF, NODE_CRASH, RUNNING

# Jobs that wait for a stale leader, and rounds of that observation.
_WAITING, _ROUNDS = 10, 5


async def _deposed(cluster: Cluster) -> tuple[Job, str, Moment]:
    """Lets the only node own a job and then takes the lock from it; returns the job, the node, and since when."""
    await cluster.leader()
    (job,) = await cluster.jobs.owned(1)
    stolen = cluster.T.now()
    await cluster.lock.steal(cluster.T.foreign_lease)
    await cluster.lock.nobody_leads()
    return job, cluster.alone, stolen


_DEPOSED = "first_leader + load_shown + renew_interval + tolerance"


@verifies("CO-LOCK-05", isolation="disruptive", nodes=1, waits=f"{_DEPOSED} + foreign_lease", needs_hooks=[ENQUEUE])
async def test_a_leader_that_can_not_renew_stops_dispatching_and_goes_on_as_follower(
    cluster: Cluster, T: SpecTime
) -> None:
    _, node, stolen = await _deposed(cluster)
    since = T.now()
    async with cluster.jobs.steadily(T.steady_gap) as given:
        await T.sleep_until(stolen, T.foreign_lease - T.tolerance, "dispatches by the leader that was deposed")
    early = await cluster.bus.entries(DISPATCH, queue=given[0].queue)
    demand(not early, "no dispatch", _told(early), "it has not won the lock anew")
    beats = await cluster.beats.of(node, since=since)
    demand(beats, "heartbeats", "none", f"{node} goes on as follower")
    wrong = [each.describe() for each in beats if each.job_count != 1]
    demand(not wrong, "jobCount 1 all the time", "; ".join(wrong), f"{node} keeps its job")
    (first, *_) = given
    with cluster.context.arranging("CO-LOCK-01"):  # the positive control: once it leads again the same jobs go out
        _, again = await cluster.lock.taken("free_lock_claim", since=T.now())
    await cluster.jobs.dispatched(first, "few_out", since=again, owner="CO-DISP-01")


@verifies("CO-LOCK-05", part=2, isolation="disruptive", nodes=1, waits=f"{_DEPOSED} + event_latency")
async def test_a_leader_that_lost_the_lock_goes_on_to_process_its_jobs_events(cluster: Cluster) -> None:
    job, node, _ = await _deposed(cluster)
    published = await cluster.worker.status(job, RUNNING)
    await cluster.groups.done([job], "event_latency", since=published)
    expect(await cluster.groups.reader(job), await cluster.id_of(node), why="who reads the job")


@verifies("CO-LOCK-05", part=3, isolation="disruptive", nodes=1, waits=f"{_DEPOSED} + event_latency")
async def test_a_leader_that_lost_the_lock_still_owns_its_jobs(cluster: Cluster) -> None:
    job, node, _ = await _deposed(cluster)
    published = await cluster.worker.completes(job)
    record, _ = await cluster.store.is_status(job, "Completed", "event_latency", since=published)
    expect(record.owner, await cluster.id_of(node), why="the owner that is recorded")


@verifies(
    "CO-LOCK-05",
    part=4,
    isolation="disruptive",
    nodes=3,
    waits="first_leader + free_lock_claim + 2*renew_interval + lease",
    needs_hooks=[ENQUEUE],
)
async def test_after_the_lock_was_removed_one_node_dispatches(cluster: Cluster, deeds: Deeds, T: SpecTime) -> None:
    await cluster.leader()
    removed = await cluster.lock.free()
    sample, _ = await cluster.lock.taken("free_lock_claim", since=removed)
    await T.sleep_until(removed, T.renew_interval + T.tolerance, "the last leader to notice")
    async with cluster.jobs.steadily(T.quick_gap) as given:
        await T.sleep(T.lease, "dispatches by two leaders")
    entries = await cluster.jobs.all_dispatched(given, "few_out", since=T.now(), owner="CO-DISP-01")
    await deeds.tap.nothing_bypassed()
    holder = deeds.claimant(sample.value) or await cluster.leader_by(sample.value)
    demand(holder, "the claim that took the lock", "none at the tap", "somebody leads")
    deeds.all_from(entries, [holder], "it holds the lock")


# --- CO-LOCK-06


async def _must_not_act(cluster: Cluster, jobs: Sequence[Job], woken: Moment, hold: Hold) -> None:
    """Judges that nothing is dispatched or offered until the stale leader must have noticed."""
    T = cluster.T
    await T.sleep_until(woken, T.renew_interval + T.tolerance, "actions of the stale leader")
    done = await cluster.bus.entries(DISPATCH, queue=jobs[0].queue)
    demand(not done, "no dispatch", _told(done), "its lease has run out, and another holds the lock", unsafe=True)
    await cluster.no_entry(ASSIGNED, since=woken, why="its lease has run out, and another holds the lock")
    await hold.still()


async def _dispatched_once(cluster: Cluster, jobs: Sequence[Job], since: Moment) -> None:
    """Judges that each of these jobs of one queue is dispatched once, now that the lock is free."""
    entries = await cluster.jobs.all_dispatched(jobs, "dispatch_after_free_lock", since=since)
    seen = sorted(each.message.job_id for each in entries)
    expect(seen, sorted(job.id for job in jobs), why="dispatches, one for each job")


_STALE = "first_leader + lease + renew_interval + tolerance + dispatch_after_free_lock"


@pytest.mark.parametrize("number", range(1, _ROUNDS + 1))
@verifies("CO-LOCK-06", isolation="disruptive", nodes=1, waits=_STALE, needs_hooks=[ENQUEUE])
async def test_a_leader_that_was_frozen_for_longer_than_its_lease_does_not_act(
    cluster: Cluster, T: SpecTime, number: int
) -> None:
    cluster.context.transcript.note(f"round {number}")
    leader = await cluster.leader()
    await cluster.pause(leader)
    paused = T.now()
    async with cluster.lock.held() as hold:
        await T.sleep_until(paused, T.lease, "the lease of the frozen leader to run out")
        jobs = await cluster.jobs.enqueue(_WAITING)
        woken = T.now()
        await cluster.resume(leader)
        await _must_not_act(cluster, jobs, woken, hold)
        released = await hold.release()
        await _dispatched_once(cluster, jobs, released)


@verifies("CO-LOCK-06", part=4, isolation="disruptive", nodes=1, waits=_STALE, needs_hooks=[ENQUEUE])
async def test_a_leader_that_was_cut_off_for_longer_than_its_lease_does_not_act(
    cluster: Cluster, faults: Faults, T: SpecTime
) -> None:
    leader = await cluster.leader()
    async with faults.during("cut", f"{leader}-redis"):
        cut = T.now()
        hold = await cluster.lock.hold()
        await T.sleep_until(cut, T.lease, "the lease of the leader that is cut off to run out")
        jobs = await cluster.jobs.enqueue(_WAITING)
        woken = T.now()
    await _must_not_act(cluster, jobs, woken, hold)
    await _dispatched_once(cluster, jobs, await hold.release())


async def _deposed_while_frozen(cluster: Cluster) -> tuple[str, list[Job], Moment, Moment]:
    """Freezes the leader of three until another leads, and lets it go on; jobs are enqueued all the time.

    Returns the node, the jobs, when the lock had its new value, and when it went on. Judges that the value stays.
    """
    T = cluster.T
    leader = await cluster.leader()
    old = await cluster.lock.value()
    async with cluster.jobs.steadily(T.quick_gap) as given:
        paused = T.now()
        await cluster.pause(leader)
        new, taken = await cluster.lock.taken("leader_takeover", since=paused, other_than=old, owner="CO-LOCK-03")
        woken = T.now()
        await cluster.resume(leader)

        async def stays() -> None:
            seen = await cluster.lock.value()
            demand(seen == new.value, f"{new.value} in the lock", seen or "no value", "its holder is well", unsafe=True)

        await cluster.throughout(stays, T.renew_interval + T.tolerance, "the stale leader, and the new one's lock")
    return leader, given, taken, woken


_TAKEN_OVER = "first_leader + leader_takeover + renew_interval + tolerance + many_out"


@verifies("CO-LOCK-06", part=2, isolation="disruptive", nodes=3, waits=_TAKEN_OVER, needs_hooks=[ENQUEUE])
async def test_a_stale_leader_and_a_new_one_dispatch_each_job_once(cluster: Cluster) -> None:
    _, given, _, _ = await _deposed_while_frozen(cluster)
    entries = await cluster.jobs.all_dispatched(given, "many_out", since=cluster.T.now(), owner="CO-FAIL-01")
    seen = [each.message.job_id for each in entries]
    twice = sorted({job_id for job_id in seen if seen.count(job_id) > 1})
    demand(
        not twice, "each job dispatched once", f"twice or more: {', '.join(twice)}", "under two leaders", unsafe=True
    )


@verifies("CO-LOCK-06", part=3, isolation="disruptive", nodes=3, waits=_TAKEN_OVER, needs_hooks=[ENQUEUE])
async def test_a_stale_leader_writes_nothing_as_leader(cluster: Cluster, deeds: Deeds) -> None:
    leader, given, _, woken = await _deposed_while_frozen(cluster)
    await deeds.tap.nothing_bypassed()
    done = await cluster.found(DISPATCH, since=woken, queue=given[0].queue)
    done += await cluster.found(ASSIGNED, since=woken)
    done += await cluster.found(HANDOFF, lambda each: each.message.reason == NODE_CRASH, since=woken)
    demand(done, "dispatches by the new leader", "none", "jobs were enqueued all the time")
    deeds.none_from(done, leader, "another node has the lock")


def _told(entries: Sequence[Entry]) -> str:
    return "; ".join(each.describe() for each in entries[:5])
