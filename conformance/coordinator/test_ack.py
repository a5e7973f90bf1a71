"""ACKs that come in time, and the retries until they come (seed 4, Hybrid ACK Strategy, cases A and B)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from holdfast.check.faults import Faults
from holdfast.check.finding import demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.coordinator.bus import Entry
from holdfast.conformance.coordinator.client import Cluster
from holdfast.conformance.coordinator.ghost import Ghost, everything, playing
from holdfast.conformance.coordinator.leaving import Leaving
from holdfast.conformance.coordinator.messages import Job, new_id
from holdfast.conformance.coordinator.pace import answered_within, around, evenly, leaves_registry
from holdfast.conformance.coordinator.wire import LOGS, SHUTDOWN, iso, milliseconds_of, same_handoff

_DRAIN = "load_shown + first_offer + case_c_exit + exit_tolerance"
_SHORT = "load_shown + first_offer + in_second_wait + prompt_exit"
_MANY, _LOGS = 10, 10


@dataclass(frozen=True)
class _Answered:
    """A drain of which one job was acknowledged; `first` is that job's first handoff entry."""

    leaving: Leaving
    ghost: Ghost
    first: Entry
    acked: Moment


@asynccontextmanager
async def _one_acked(cluster: Cluster, *jobs: Job) -> AsyncIterator[_Answered]:
    """Ends the only node; a ghost acknowledges the first of its jobs near the end of the first wait, no other."""
    T = cluster.T
    async with playing(cluster.ghost()) as ghost:
        leaving = cluster.leave(cluster.alone)
        first = (await leaving.offered(*jobs))[0]
        await T.sleep_until(first.at, T.late_in_first_wait, "the ACK, late in the first wait")
        acked = await ghost.ack(jobs[0].id, to=await cluster.id_of(leaving.node))
        answered_within(T, first, acked, 1)
        yield _Answered(leaving, ghost, first, acked)


@verifies("CO-ACK-01", isolation="disruptive", nodes=1, waits=_DRAIN)
async def test_an_ack_in_the_first_wait_settles_the_job(cluster: Cluster) -> None:
    job, other = await cluster.jobs.owned(2)
    async with _one_acked(cluster, job, other) as drain:
        leaving = drain.leaving
        what = f"a heartbeat of {leaving.node} that counts one job less"
        await cluster.beats.shows(
            leaving.node, lambda beat: beat.job_count == 1, "load_shown", since=drain.acked, what=what
        )
        await leaving.ends()
        await leaving.counted(job, 1, "it was acknowledged in the first wait")
        again = await leaving.offers(other)
        demand(len(again) > 1, f"{other.id} published again", "one handoff entry", "nobody acknowledged it")


@verifies("CO-ACK-01", part=2, isolation="disruptive", nodes=1, waits=_DRAIN + " + 2*event_latency")
async def test_a_node_reads_no_events_of_a_job_that_was_acknowledged(cluster: Cluster, T: SpecTime) -> None:
    job, other = await cluster.jobs.running(2)
    read = await cluster.worker.logs(job)
    await cluster.groups.done([job], "event_latency", since=read, owner="CO-CHAN-04")
    async with _one_acked(cluster, job, other) as drain:
        await T.sleep_until(drain.acked, T.never("event_latency"), "the node to leave the channels of the job")
        await cluster.worker.logs(job, _LOGS)
        await drain.leaving.ends()
        left = {group.name: group.undelivered for group in await cluster.groups.of(LOGS, **job.ids)}
        for group, count in left.items():
            expect(count, _LOGS, why=f"logs that {group} was not given, published after the ACK of {job.id}")
        demand(left, "a group on its logs", "none", f"{drain.leaving.node} read a log before it was told to stop")


@verifies("CO-ACK-01", part=3, isolation="disruptive", nodes=1, waits=_DRAIN)
async def test_a_job_leaves_the_registry_at_its_ack(cluster: Cluster) -> None:
    job, other = await cluster.jobs.owned(2)
    async with _one_acked(cluster, job, other) as drain:
        await leaves_registry(cluster, drain.leaving, job, drain.acked)
        drain.leaving.alive("another job is not acknowledged yet")


@verifies("CO-ACK-01", part=4, isolation="disruptive", nodes=1, waits="load_shown + first_offer + prompt_exit")
async def test_an_ack_before_the_reply_to_the_publication_counts(cluster: Cluster, faults: Faults, T: SpecTime) -> None:
    jobs = await cluster.jobs.owned(_MANY)
    slow = faults.during("delay", f"{cluster.alone}-redis", seconds=T.redis_delay, direction="down")
    async with slow, playing(cluster.ghost()) as ghost:
        ghost.acks(everything)
        leaving = cluster.leave(cluster.alone)
        last = await ghost.acked_all(jobs)
        await leaving.exits("prompt_exit", since=last)
        for job in jobs:
            await leaving.counted(job, 1, "it was acknowledged as soon as its entry appeared")


# --- CO-ACK-02


@asynccontextmanager
async def _three_acks(cluster: Cluster, job: Job, named: Job) -> AsyncIterator[_Answered]:
    """Ends the only node; sends it an ACK of an unknown job and a sparse one, and another node one of its jobs."""
    T = cluster.T
    async with playing(cluster.ghost()) as ghost:
        leaving = cluster.leave(cluster.alone)
        _, first = await leaving.offered(job, named)
        own = await cluster.id_of(leaving.node)
        await T.sleep_until(first.at, T.in_first_wait, "the ACKs, in the first wait")
        await ghost.ack(new_id(), to=own)
        acked = await ghost.ack(named.id, to=own, named=False)
        await ghost.ack(job.id, to="other")
        answered_within(T, first, acked, 1)
        yield _Answered(leaving, ghost, first, acked)


@verifies("CO-ACK-02", isolation="disruptive", nodes=1, waits=_DRAIN)
async def test_an_ack_settles_the_job_that_it_names_and_no_other(cluster: Cluster, T: SpecTime) -> None:
    job, named = await cluster.jobs.owned(2)
    async with _three_acks(cluster, job, named) as drain:
        leaving = drain.leaving

        async def beats_on() -> bool:
            return any(each.at.lo > drain.acked.hi for each in await cluster.beats.of(leaving.node))

        give_up = 2 * (T.heartbeat_interval + T.tolerance)
        await T.until(
            beats_on, give_up=give_up, since=drain.acked, what=f"a heartbeat of {leaving.node} after the ACKs"
        )
        await leaving.ends()
        await leaving.counted(named, 1, "an ACK without newOwner on the node's own topic named it")
        why = "one ACK named an unknown job, one another job, one was for another node"
        entries = await leaving.counted(job, T.count("handoff_publications"), why)
        evenly(T, "handoff_ack_timeout", entries, "the next publication")


@verifies("CO-ACK-02", part=2, isolation="disruptive", nodes=1, waits=_DRAIN)
async def test_only_the_job_that_an_ack_names_leaves_the_registry(cluster: Cluster) -> None:
    job, named = await cluster.jobs.owned(2)
    async with _three_acks(cluster, job, named) as drain:
        await leaves_registry(cluster, drain.leaving, named, drain.acked)
        await drain.leaving.offer(job, 2)
        owned = await cluster.store.jobs_of(await cluster.id_of(drain.leaving.node))
        demand(job.id in owned, f"{job.id} among the jobs of {drain.leaving.node}", "not there", "no ACK was for it")


# --- CO-ACK-03


@pytest.mark.parametrize("running", [True, False], ids=["running", "dispatched"])
@verifies("CO-ACK-03", isolation="disruptive", nodes=1, waits="load_shown + first_offer + handoff_give_up")
async def test_a_handoff_without_ack_is_published_again_after_each_wait(
    cluster: Cluster, T: SpecTime, running: bool
) -> None:
    (job,) = await cluster.jobs.owned(running=running)
    async with playing(cluster.ghost()):
        leaving = cluster.leave(cluster.alone)
        first = await leaving.offer(job)
        await leaving.offer(job, 2)
        await T.sleep_until(first.at, T.handoff_give_up + T.tolerance, "all retries")
        entries = await leaving.offers(job)
        for entry in entries[1:]:
            same = same_handoff(first.message, entry.message)
            expected = f"job, reason and execution of {first.message.describe()}"
            demand(same, expected, entry.message.describe(), "the same handoff is published again")
        evenly(T, "handoff_ack_timeout", entries, "the next publication")


# --- CO-ACK-04


@verifies("CO-ACK-04", isolation="disruptive", nodes=1, waits=_DRAIN)
async def test_a_handoff_without_ack_is_given_up_after_its_retries(cluster: Cluster, T: SpecTime) -> None:
    (job,) = await cluster.jobs.owned()
    async with playing(cluster.ghost()):
        leaving = cluster.leave(cluster.alone)
        await leaving.ends()
        publications = T.count("handoff_publications")
        entries = await leaving.counted(job, publications, "nobody acknowledged it", reason=SHUTDOWN)
        first, last = entries[0].at, entries[-1].at
        # Where the first publication is one of the tries, the phase is that much shorter.
        less = (1 + T.count("handoff_max_retries") - publications) * T.handoff_ack_timeout
        begun = Moment(first.lo - less, first.hi - less)
        around(T, "handoff_retry_phase", since=begun, seen=last, what="the last publication")


@verifies("CO-ACK-04", part=2, isolation="disruptive", nodes=1, waits=_DRAIN)
async def test_a_job_is_marked_when_its_retries_are_used_up(cluster: Cluster, T: SpecTime) -> None:
    (job,) = await cluster.jobs.owned()
    async with playing(cluster.ghost()):
        leaving = cluster.leave(cluster.alone)
        first = await leaving.offer(job)

        async def marked() -> bool:
            return (await cluster.store.job(job)).orphan_pending

        give_up = 2 * (T.handoff_give_up + T.wide_tolerance)
        what = f"{job.id} to be ORPHAN_PENDING"
        _, seen = await T.until(marked, give_up=give_up, since=first.at, what=what)
        around(T, "handoff_give_up", since=first.at, seen=seen, what="the mark", late_by="wide_tolerance")


# --- CO-ACK-05


@asynccontextmanager
async def _acked_late(cluster: Cluster, job: Job) -> AsyncIterator[_Answered]:
    """Ends the only node; acknowledges its job in the second wait, with a timestamp from before the second entry."""
    T = cluster.T
    async with playing(cluster.ghost()) as ghost:
        leaving = cluster.leave(cluster.alone)
        first = await leaving.offer(job)
        says = iso(milliseconds_of(first.id) / 1000 + T.late_in_first_wait)
        await T.sleep_until(first.at, T.in_second_wait, "the ACK, in the second wait")
        acked = await ghost.ack(job.id, to=await cluster.id_of(leaving.node), at=says)
        answered_within(T, first, acked, 2)
        yield _Answered(leaving, ghost, first, acked)


@verifies("CO-ACK-05", isolation="disruptive", nodes=1, waits=_SHORT)
async def test_an_ack_during_the_retries_settles_the_job(cluster: Cluster) -> None:
    (job,) = await cluster.jobs.owned()
    async with _acked_late(cluster, job) as drain:
        await drain.leaving.exits("prompt_exit", since=drain.acked)
        await drain.leaving.counted(job, 2, "it was acknowledged in the second wait")


@verifies(
    "CO-ACK-05",
    part=2,
    isolation="disruptive",
    nodes=1,
    waits=_SHORT,
)
async def test_a_job_acknowledged_during_the_retries_is_never_an_orphan(cluster: Cluster) -> None:
    (job,) = await cluster.jobs.owned()

    async def not_marked() -> None:
        seen = await cluster.store.job(job)
        demand(not seen.orphan_pending, "no ORPHAN_PENDING", seen.describe(), "it is acknowledged during the retries")

    watch = cluster.meanwhile(not_marked, "the mark of a job that is acknowledged")
    async with watch, _acked_late(cluster, job) as drain:
        await drain.leaving.exits("prompt_exit", since=drain.acked)
        owned = await cluster.store.jobs_of(await cluster.id_of(drain.leaving.node))
        gone = job.id not in owned
        demand(gone, f"{job.id} not among the jobs of {drain.leaving.node}", "still there", "it has exited")
