"""What goes on when a node crashes (seed 7, Leader Crashes, Follower Crashes): scheduling, dispatching, leadership."""

from collections import Counter
from itertools import pairwise

from holdfast.check.finding import Finding, demand
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.coordinator.bus import Entry
from holdfast.conformance.coordinator.client import Cluster
from holdfast.conformance.coordinator.lock import Sample
from holdfast.conformance.coordinator.messages import Job
from holdfast.conformance.coordinator.store import ENQUEUE, SCHEDULE
from holdfast.conformance.coordinator.wire import DISPATCH

_LATER = 10


async def _flows(cluster: Cluster, given: list[Job]) -> None:
    """Waits until the first of the jobs that are given steadily has been dispatched."""

    async def look() -> bool:
        return bool(given) and bool(await cluster.bus.entries(DISPATCH, queue=given[0].queue))

    with cluster.context.arranging("CO-DISP-01"):
        await cluster.T.until(look, give_up=cluster.never("few_out"), what="the first dispatch")


def _once(entries: list[Entry], why: str) -> None:
    """Judges that no job was dispatched twice."""
    twice = [job_id for job_id, count in Counter(each.message.job_id for each in entries).items() if count > 1]
    demand(not twice, "each job dispatched once", f"{', '.join(twice[:3])} more than once", why)


@verifies(
    "CO-FAIL-01",
    isolation="disruptive",
    nodes=3,
    waits="first_leader + few_out + schedule_gap + many_out",
    needs_hooks=[ENQUEUE, SCHEDULE],
)
async def test_scheduling_goes_on_after_the_leader_crashed(cluster: Cluster, T: SpecTime) -> None:
    leader = await cluster.leader()
    often = await cluster.jobs.schedule(T.schedule_period)
    async with cluster.jobs.steadily(T.steady_gap) as given:
        with cluster.context.arranging("CO-ROLE-02"):
            give_up = cluster.never("schedule_after_free_lock")
            await cluster.entry(DISPATCH, give_up=give_up, what="a first job of the schedule", queue=often)
            await _flows(cluster, given)
        old, queue, asked = await cluster.lock.value(), given[0].queue, T.now()
        first = Moment(asked.lo + T.due_in_gap, asked.hi + T.due_in_gap)
        rarely = await cluster.jobs.schedule(T.gap_period, first=first)
        killed = await cluster.kill(leader)

        def after(entry: Entry) -> bool:
            return entry.at.lo > killed.hi

        what = "the next dispatch after the leader's crash"
        await cluster.entry_in_time(DISPATCH, after, bound="dispatch_gap", since=killed, what=what, queue=queue)
        _, taken = await cluster.lock.taken("leader_takeover", since=killed, other_than=old, owner="CO-LOCK-03")
        what = "the job of a schedule that fell due while nobody led"
        await cluster.entry_in_time(DISPATCH, bound="schedule_gap", since=killed, what=what, queue=rarely)
        await T.sleep_until(killed, T.schedule_gap, "the new leader's work")
    await cluster.jobs.all_dispatched(given, "many_out", since=T.now(), owner="CO-FAIL-01")
    _once(await cluster.bus.entries(DISPATCH, queue=queue), "one leader crashed, another took over")
    new = await cluster.found(DISPATCH, since=taken, queue=often)
    told = f"{len(new)} since then"
    demand(new, "jobs of the first schedule from the new leader", told, f"its period is {T.schedule_period:.1f} s")


def _without_gap(cluster: Cluster, entries: list[Entry]) -> None:
    """Judges that no two dispatches, one after the other, lie far apart."""
    T, bound = cluster.T, "follower_crash_gap"
    for before, after in pairwise(sorted(entries, key=lambda each: each.at.lo)):
        gap = after.at.lo - before.at.hi
        if gap > cluster.never(bound) + T.tolerance:
            expected = f"a dispatch every {T.steady_gap:.2f} s"
            raise Finding([expected], f"none for {gap:.2f} s", "only a follower has crashed", late=True)
        T.at_most(bound, since=before.at, seen=after.at, tolerance="tolerance", what="the next dispatch")


@verifies(
    "CO-FAIL-02",
    isolation="disruptive",
    nodes=3,
    waits="first_leader + heartbeat_interval + crash_watch + 2*load_shown",
    needs_hooks=[ENQUEUE],
)
async def test_a_crash_of_a_follower_leaves_the_leader_alone(cluster: Cluster, T: SpecTime) -> None:
    await cluster.leader()
    follower = (await cluster.followers())[0]
    await cluster.beats.next(follower, since=T.now())
    before = await cluster.lock.value()

    def same(seen: Sample) -> None:
        demand(seen.value == before, f"{before} in the lock", seen.describe(), "only a follower has crashed")

    async with cluster.jobs.steadily(T.steady_gap) as given:
        await _flows(cluster, given)
        await cluster.kill(follower)
        await cluster.lock.watch(T.crash_watch, "a change of leadership", same)
        entries = await cluster.bus.entries(DISPATCH, queue=given[0].queue)
    _without_gap(cluster, entries)
    await T.sleep(T.load_shown, "load figures without new jobs")
    survivors, since = cluster.others(follower), T.now()
    counted = sum((await cluster.beats.counts(survivors)).values())
    await cluster.jobs.inject(_LATER)
    await cluster.beats.add_up(survivors, counted + _LATER, "load_shown", since=since)
