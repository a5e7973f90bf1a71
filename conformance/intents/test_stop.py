"""Stops (seed 3.2 step 7): nothing comes back after one, and one that comes early prevents the start."""

from holdfast.check.finding import demand, expect
from holdfast.check.keyspace import Keyspace
from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.conformance.intents.client import Intents, Session
from holdfast.conformance.intents.course import Course
from holdfast.conformance.intents.running import ONE_OF_EACH, drained, lease_keys, pipeline_asked
from holdfast.conformance.intents.wire import accepted, shown
from holdfast.conformance.shared.wire import status


@verifies("IN-RUN-06", part=2, isolation="quiet", nodes=ONE_OF_EACH, waits="start_ready + stop_release + renewal_due")
async def test_a_released_lease_does_not_come_back(intents: Intents, keys: Keyspace, T: SpecTime) -> None:
    session = await intents.running()
    leases = await lease_keys(intents, session)
    stopped = T.now()
    expect(await intents.stop(session), accepted(), status(202), why="a stop")
    await intents.released(*leases, bound="stop_release", since=stopped, what="release after the stop")
    gone = T.now()
    await T.sleep_until(stopped, T.renewal_due, "a renewal that was not cancelled")
    for key in leases:
        again = await keys.written(key, since=gone)
        demand(again is None, f"{key} not written again", again.kind if again else "", "after its release")


@verifies("IN-RUN-07", part=2, isolation="disruptive", nodes=ONE_OF_EACH, waits="start_ready + drain_max")
async def test_a_worker_that_has_exited_leaves_no_lease(intents: Intents) -> None:
    await intents.running()
    await drained(intents, intents.worker)
    left = ", ".join(f"{key} of {owner}" for key, owner in (await intents.store.leases()).items())
    demand(not left, "no lease", left, "once the worker has exited")


@verifies("IN-RUN-08", part=2, waits="start_ready + slow_start + late_ready_watch")
async def test_a_stop_cancels_a_pipeline_that_is_starting(intents: Intents, T: SpecTime) -> None:
    ref = intents.channel()
    await intents.steer(ref, start_delay="slow_start")
    session = await intents.begin(ref)
    await pipeline_asked(intents, session)
    since = T.now()
    expect(await intents.stop(session), accepted(), status(202), why="a stop while the pipeline is starting")
    course = Course(intents, session)
    await intents.comes(course.end, "stop_release", since=since, what="the end of the session", every=T.sample_fast)
    left = since.hi + T.late_ready_watch - T.now().hi
    await intents.throughout(course.look, left, "a start that was not cancelled", every=T.sample_fast)
    course.never_ran("from the stop on")
    held = [key for key, owner in (await intents.store.leases()).items() if owner == session.id]
    demand(not held, "no lease of the session", ", ".join(held), "after the stop")


@verifies("IN-RUN-08", part=3, isolation="disruptive", nodes=ONE_OF_EACH, waits="start_ready + stop_release")
async def test_a_session_stopped_before_it_was_picked_up_never_runs(intents: Intents, T: SpecTime) -> None:
    session = await _stopped_early(intents)
    course = Course(intents, session)
    await T.until(course.end, give_up=T.give_up, what="the end of the session", every=T.sample_fast)
    course.never_ran("stopped before the worker saw it")
    expect(await intents.poll(session), shown("STOPPED"), why="stopped before the worker saw it")


@verifies(
    "IN-RUN-08", part=4, isolation="disruptive", nodes=ONE_OF_EACH, waits="start_ready + stop_release + quiet_watch"
)
async def test_no_pipeline_is_started_for_a_session_stopped_before(intents: Intents, T: SpecTime) -> None:
    session = await _stopped_early(intents)
    await intents.ended(session)
    expect(await intents.runs(session.target), 0, why="pipelines of the channel once the session has ended")
    await T.sleep(T.quiet_watch, "a pipeline that starts late")
    expect(await intents.runs(session.target), 0, why="pipelines of the channel a while later")


async def _stopped_early(intents: Intents) -> Session:
    """Starts and stops a channel while the worker is paused, and lets the worker go on; returns the session."""
    await intents.pause_workers()
    session = await intents.begin()
    expect(await intents.stop(session), accepted(), status(202), why="a stop before the session is picked up")
    for worker in intents.workers:
        await intents.resume(worker)
    return session
