"""Handoffs that nobody acknowledges, and how a node ends then (seed 4, Hybrid ACK Strategy, cases C and D)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from holdfast.check.faults import Faults
from holdfast.check.finding import Finding, demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.coordinator.base import of_job
from holdfast.conformance.coordinator.client import Cluster
from holdfast.conformance.coordinator.ghost import Ghost, playing
from holdfast.conformance.coordinator.leaving import Leaving
from holdfast.conformance.coordinator.messages import Job
from holdfast.conformance.coordinator.pace import answered_within, around, leaves_registry
from holdfast.conformance.coordinator.wire import COMPLETED, HANDOFF, RUNNING

_DRAIN = "load_shown + first_offer + case_c_exit + exit_tolerance"
_HARD = "load_shown + handoff_hard_timeout + exit_tolerance"
_NOBODY = "nobody acknowledged it"
_LOGS = 2

# --- CO-ACK-06


async def _running(cluster: Cluster) -> Job:
    """Returns a job of the only node whose record says Running."""
    (job,) = await cluster.jobs.owned()
    with cluster.context.arranging("CO-EVENT-01"):
        await cluster.store.is_status(job, RUNNING, "event_latency", since=cluster.T.now())
    return job


@asynccontextmanager
async def _given_up(cluster: Cluster, job: Job) -> AsyncIterator[Leaving]:
    """Ends the only node and waits until its running job is ORPHAN_PENDING; the block begins then.

    Judges when that was, and that the job stays Running.
    """
    T = cluster.T

    async def marked() -> bool:
        seen = await cluster.store.job(job)
        expect(seen.status, RUNNING, why=f"the status of {job.id} while its owner drains")
        return seen.orphan_pending

    async with playing(cluster.ghost()):
        leaving = cluster.leave(cluster.alone)
        first = await leaving.offer(job)
        give_up, what = 2 * (T.handoff_give_up + T.wide_tolerance), f"{job.id} to be ORPHAN_PENDING"
        _, seen = await T.until(marked, give_up=give_up, since=first.at, what=what)
        around(T, "handoff_give_up", since=first.at, seen=seen, what="the mark", late_by="wide_tolerance")
        yield leaving


@verifies("CO-ACK-06", isolation="disruptive", nodes=1, waits=_DRAIN)
async def test_a_job_without_ack_stays_marked_and_running(cluster: Cluster) -> None:
    job = await _running(cluster)

    async def marked() -> None:
        seen = await cluster.store.job(job)
        demand(seen.orphan_pending, f"{job.id} still ORPHAN_PENDING", seen.describe(), _NOBODY)
        expect(seen.status, RUNNING, why=f"the status of {job.id} once it is ORPHAN_PENDING")

    async with _given_up(cluster, job) as leaving:
        async with cluster.meanwhile(marked, "the mark of a job that was given up"):
            await leaving.ends()
        await marked()


@verifies("CO-ACK-06", part=2, isolation="disruptive", nodes=1, waits=_DRAIN + " + cold_recovery")
async def test_a_report_on_a_job_that_was_given_up_is_processed_later(cluster: Cluster) -> None:
    job = await _running(cluster)
    async with _given_up(cluster, job) as leaving:
        await leaving.ends()
    await cluster.worker.completes(job)
    _, started = await cluster.start_new()
    await cluster.store.is_status(job, COMPLETED, "cold_recovery", since=started)


# --- CO-ACK-07


@asynccontextmanager
async def _three_fates(cluster: Cluster, stuck: Job, quick: Job, slow: Job) -> AsyncIterator[tuple[Leaving, Ghost]]:
    """Ends the only node; `quick` is acknowledged at once, `slow` in the second wait, `stuck` never."""
    T = cluster.T
    async with playing(cluster.ghost()) as ghost:
        ghost.acks(lambda entry: entry.message.job_id == quick.id)
        leaving = cluster.leave(cluster.alone)
        _, soon, late = await leaving.offered(stuck, quick, slow)
        answered_within(T, soon, await ghost.acked_all([quick]), 1)
        await T.sleep_until(late.at, T.in_second_wait, "the ACK, in the second wait")
        acked = await ghost.ack(slow.id, to=await cluster.id_of(leaving.node))
        answered_within(T, late, acked, 2)
        yield leaving, ghost


@verifies("CO-ACK-07", isolation="disruptive", nodes=1, waits=_DRAIN)
async def test_each_handoff_has_its_own_retries(cluster: Cluster, T: SpecTime) -> None:
    stuck, quick, slow = await cluster.jobs.owned(3)
    async with _three_fates(cluster, stuck, quick, slow) as (leaving, _):
        await leaving.ends()
        await leaving.counted(quick, 1, "it was acknowledged at once")
        await leaving.counted(slow, 2, "it was acknowledged in the second wait")
        await leaving.counted(stuck, T.count("handoff_publications"), _NOBODY)


@verifies("CO-ACK-07", part=2, isolation="disruptive", nodes=1, waits=_DRAIN)
async def test_only_the_stuck_job_is_marked(cluster: Cluster) -> None:
    stuck, quick, slow = await cluster.jobs.owned(3)
    async with _three_fates(cluster, stuck, quick, slow) as (leaving, ghost):
        await leaves_registry(cluster, leaving, quick, ghost.acked[quick.id])
        await leaves_registry(cluster, leaving, slow, ghost.acked[slow.id])
        await leaving.ends()
        records = [await cluster.store.job(job) for job in (stuck, quick, slow)]
        marked = [each.job_id for each in records if each.orphan_pending]
        expect(marked, [stuck.id], why="jobs that are ORPHAN_PENDING once the node has exited")


# --- CO-ACK-08


@pytest.mark.parametrize("count", [1, 3])
@verifies("CO-ACK-08", isolation="disruptive", nodes=1, waits=_DRAIN)
async def test_a_node_with_jobs_left_waits_once_and_exits(cluster: Cluster, T: SpecTime, count: int) -> None:
    jobs = await cluster.jobs.owned(count)
    async with playing(cluster.ghost()):
        leaving = cluster.leave(cluster.alone)
        offers = sorted(await leaving.offered(*jobs), key=lambda each: each.at.lo)
        ended = await leaving.exits_by("case_c_exit", since=offers[-1].at, tolerance="exit_tolerance")
        what = f"the exit of {leaving.node}"
        T.at_least("case_c_exit", since=offers[0].at, seen=ended, tolerance="wide_tolerance", what=what)


# --- CO-ACK-09


@asynccontextmanager
async def _acked_in_the_wait(cluster: Cluster, job: Job) -> AsyncIterator[tuple[Leaving, Moment, Moment]]:
    """Ends the only node and acknowledges its job after it was given up.

    Gives the drain, the moment of the first handoff entry, and that of the ACK.
    """
    T = cluster.T
    async with playing(cluster.ghost()) as ghost:
        leaving = cluster.leave(cluster.alone)
        first = (await leaving.offer(job)).at
        await T.sleep_until(first, T.in_orphan_wait, "the ACK, in the wait of case C")
        leaving.alive("the wait of case C is not over")
        yield leaving, first, await ghost.ack(job.id, to=await cluster.id_of(leaving.node))


@verifies("CO-ACK-09", isolation="disruptive", nodes=1, waits=_DRAIN)
async def test_a_late_ack_still_settles_the_job(cluster: Cluster, T: SpecTime) -> None:
    (job,) = await cluster.jobs.owned()
    async with _acked_in_the_wait(cluster, job) as (leaving, first, acked):

        async def settled() -> Moment | None:
            beats = await cluster.beats.of(leaving.node, since=acked)
            if shown := next((beat for beat in beats if beat.job_count == 0), None):
                return shown.at
            if not leaving.exited:
                return None
            # Who stays until the wait is over, and counts the job to its end, has not heard the ACK.
            stayed = leaving.exited.lo >= first.hi + T.case_c_exit - T.wide_tolerance
            if stayed and any(beat.at.lo > acked.hi + T.event_latency for beat in beats):
                raise Finding(["a heartbeat with jobCount 0, or an early exit"], beats[-1].describe(), "until its exit")
            return leaving.exited

        what = f"{leaving.node} to count no job, or to exit"
        seen, _ = await T.until(settled, give_up=T.never("load_shown"), since=acked, what=what)
        T.at_most("load_shown", since=acked, seen=seen, what=what)
        await leaving.exits_by("case_c_exit", since=first, tolerance="exit_tolerance")


@verifies("CO-ACK-09", part=2, isolation="disruptive", nodes=1, waits=_DRAIN)
async def test_a_late_ack_clears_the_mark(cluster: Cluster) -> None:
    (job,) = await cluster.jobs.owned()
    async with _acked_in_the_wait(cluster, job) as (leaving, _, acked):
        what = f"{job.id} no longer ORPHAN_PENDING"
        await cluster.store.becomes(job, lambda seen: not seen.orphan_pending, "event_latency", since=acked, what=what)
        await leaves_registry(cluster, leaving, job, acked)


# --- CO-ACK-10


@pytest.mark.parametrize("count", [3, 200])
@verifies("CO-ACK-10", isolation="disruptive", nodes=1, waits=_HARD)
async def test_a_lonely_node_is_gone_at_the_hard_limit(cluster: Cluster, count: int) -> None:
    await cluster.jobs.owned(count)
    leaving = cluster.leave(cluster.alone)
    await leaving.exits_by("handoff_hard_timeout", since=leaving.begun)


_SLOWLY = 10


@verifies("CO-ACK-10", isolation="disruptive", nodes=1, waits=_HARD)
async def test_slow_acks_do_not_move_the_hard_limit(cluster: Cluster, T: SpecTime) -> None:
    jobs = await cluster.jobs.owned(_SLOWLY)
    async with playing(cluster.ghost()) as ghost:
        leaving = cluster.leave(cluster.alone)
        own = await cluster.id_of(leaving.node)

        async def ack_slowly() -> None:
            for number, job in enumerate(jobs, 1):
                await T.sleep_until(leaving.begun, number * T.slow_ack, "the next ACK")
                await ghost.ack(job.id, to=own)

        cluster.beside(ack_slowly())
        await leaving.exits_by("handoff_hard_timeout", since=leaving.begun)


@verifies("CO-ACK-10", part=2, isolation="disruptive", nodes=1, waits=_HARD)
async def test_a_node_without_redis_is_gone_at_the_hard_limit(cluster: Cluster, faults: Faults) -> None:
    await cluster.jobs.owned(3)
    async with faults.during("cut", f"{cluster.alone}-redis"):
        leaving = cluster.leave(cluster.alone)
        await leaving.exits_by("handoff_hard_timeout", since=leaving.begun)


# --- CO-ACK-11


@verifies("CO-ACK-11", isolation="disruptive", nodes=1, waits=_HARD)
async def test_a_lonely_node_offers_its_job_and_waits(cluster: Cluster, T: SpecTime) -> None:
    (job,) = await cluster.jobs.owned()
    leaving = cluster.leave(cluster.alone)
    ended = await leaving.exits_by("handoff_hard_timeout", since=leaving.begun)
    entries = await leaving.counted(job, T.count("handoff_publications"), "no other node lives")
    what = f"the exit of {leaving.node}"
    T.at_least("case_c_exit", since=entries[0].at, seen=ended, tolerance="tolerance", what=what)


# --- CO-ACK-12


@asynccontextmanager
async def _swallowing(cluster: Cluster) -> AsyncIterator[Ghost]:
    """Takes every handoff of the block away from the coordinators, without living among them."""
    ghost = cluster.ghost()
    await ghost.compete()
    try:
        yield ghost
    finally:
        await ghost.leave()


async def _left_behind(cluster: Cluster, job: Job) -> None:
    """Ends the only node, whose handoffs of this job nobody gets; returns when it has exited."""
    async with _swallowing(cluster) as ghost:
        leaving = cluster.leave(cluster.alone)
        await leaving.ends()
        offered = {entry.id for entry in await leaving.offers(job)}

        async def taken() -> bool:
            return offered <= {each.entry_id for each in ghost.swallowed}

        with cluster.context.arranging("CO-DRAIN-05"):
            give_up = cluster.never("claim_latency")
            await cluster.T.until(
                taken, give_up=give_up, what=f"the handoffs of {job.id} to be given to another reader"
            )


@verifies("CO-ACK-12", isolation="disruptive", nodes=1, waits=_HARD + " + cold_recovery")
async def test_a_job_of_a_node_that_left_by_force_is_recovered(cluster: Cluster) -> None:
    (job,) = await cluster.jobs.running()
    await _left_behind(cluster, job)
    await cluster.worker.logs(job, _LOGS)
    node, started = await cluster.start_new()
    await _recovered(cluster, job, node, started)


async def _recovered(cluster: Cluster, job: Job, node: str, started: Moment) -> None:
    """Judges that a job is offered anew, and the node that was started takes it and its waiting events."""
    bound, what = "cold_recovery", f"a new handoff entry of {job.id}"
    await cluster.entry_in_time(HANDOFF, of_job(job.id), bound=bound, since=started, what=what)
    what = f"a heartbeat of {node} with jobCount 1"
    await cluster.beats.shows(node, lambda beat: beat.job_count == 1, bound, since=started, what=what)
    await cluster.groups.done([job], bound, since=started)
    await cluster.groups.has_reader([job], bound, since=started, among=[await cluster.id_of(node)])


@verifies("CO-ACK-12", part=2, isolation="disruptive", nodes=1, waits=_HARD + " + cold_recovery + event_latency")
async def test_the_record_of_a_job_survives_a_forced_exit(cluster: Cluster) -> None:
    (job,) = await cluster.jobs.running()
    node_id = await cluster.id_of(cluster.alone)
    await _left_behind(cluster, job)
    record = await cluster.store.job(job)
    expect(record.status, RUNNING, why=f"the status of {job.id}, left over at a forced exit")
    known = record.orphan_pending or job.id in await cluster.store.jobs_of(node_id)
    expected = f"{job.id} ORPHAN_PENDING or among the jobs of {cluster.alone}"
    demand(known, expected, record.describe(), "it was left over at a forced exit")
    await cluster.worker.logs(job, _LOGS)
    node, started = await cluster.start_new()
    await _recovered(cluster, job, node, started)
    await cluster.store.is_status(job, COMPLETED, "event_latency", since=await cluster.worker.completes(job))
