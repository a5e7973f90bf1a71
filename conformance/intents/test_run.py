"""A session that runs (seed 3.2 steps 5 to 7): it starts with both leases, keeps them, and gives them back."""

from holdfast.check.finding import NotObservable, demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.conformance.intents.client import Intents, Session
from holdfast.conformance.intents.course import FORWARD, Course, forward
from holdfast.conformance.intents.running import ONE_OF_EACH, drained, lease_keys, pipeline_asked
from holdfast.conformance.intents.wire import Answer, Shown, accepted, ended, ended_busy, ended_without_tuner
from holdfast.conformance.shared.wire import status

STOPPED = Shown(frozenset({"STOPPED"}), frozenset({"R_CLIENT_STOP"}))


# --- the way to a session that runs


@verifies("IN-RUN-01", waits="start_ready + hold_watch")
async def test_a_start_of_a_free_channel_comes_to_run_and_stays_so(intents: Intents, T: SpecTime) -> None:
    session = await intents.begin()
    course = Course(intents, session)

    async def ready() -> bool:
        seen = await course.look()
        demand(not seen.terminal, "a session that runs", seen.describe(), "a free channel and a free tuner")
        return seen.state in intents.running_states

    await intents.comes(ready, "start_ready", since=session.accepted, what="READY", every=T.sample_fast)

    async def still() -> None:
        demand(await ready(), "READY still", ", ".join(course.states), "the states one after the other")

    await intents.throughout(still, T.hold_watch, "the running session", every=T.sample_fast)
    course.went_forward("the states one after the other")


@verifies("IN-RUN-01", part=2)
async def test_the_log_tells_of_the_same_states_in_the_same_order(intents: Intents) -> None:
    session = await intents.running()

    async def told() -> bool:
        return "READY" in _logged(intents, session)

    with intents.context.arranging("IN-RUN-01"):
        if not intents.events(event="session.state"):
            raise NotObservable("[observe] events with lines session.state")
    await intents.comes(told, "accept_fast", what="the log line of READY")
    states = _logged(intents, session)
    demand(forward(states), FORWARD, ", ".join(states), "session.state lines of the session")


def _logged(intents: Intents, session: Session) -> list[str]:
    """Returns the states that the log says the session came to."""
    return [str(line.get("to", "")).upper() for line in intents.events(event="session.state", sessionId=session.id)]


# --- both leases before the pipeline


@verifies("IN-RUN-02", waits="start_ready")
async def test_both_leases_are_there_once_the_session_runs(intents: Intents, T: SpecTime) -> None:
    session = await intents.begin()
    await intents.ready(session, every=T.sample_fast)
    await _holds_both(intents, session, "at the first READY")


@verifies("IN-RUN-02", part=2, waits="slow_start + start_ready")
async def test_the_pipeline_is_asked_to_start_with_both_leases_held(intents: Intents) -> None:
    ref = intents.channel()
    await intents.steer(ref, start_delay="slow_start")
    session = await intents.begin(ref)
    await pipeline_asked(intents, session)
    await _holds_both(intents, session, "as soon as the pipeline was asked to start")


@verifies("IN-RUN-02", part=3)
async def test_the_log_tells_of_both_leases_before_the_pipeline(intents: Intents) -> None:
    session = await intents.running()
    for node in intents.workers:
        lines = [str(line.get("event")) for line in intents.deployment.nodes[node].events(sessionId=session.id)]
        if "pipeline.start" in lines:
            break
    else:
        raise NotObservable("[observe] events with lines pipeline.start")
    before = lines[: lines.index("pipeline.start")]
    demand(before.count("lease.acquired") == 2, "two lines lease.acquired before pipeline.start", ", ".join(lines))


async def _holds_both(intents: Intents, session: Session, when: str) -> None:
    tuners = await intents.store.tuners_of(session.id)
    service = await intents.store.lease(intents.store.service(session.target))
    expect(service.owner, session.id, why=f"owner of the service lease {when}")
    demand(len(tuners) == 1, "one tuner lease of the session", ", ".join(tuners) or "none", when)


# --- a pipeline that does not start, or ends


@verifies(
    "IN-RUN-03", isolation="quiet", nodes=ONE_OF_EACH, waits="2*start_ready + 2*stop_release + 2*pipeline_exit_after"
)
async def test_a_pipeline_that_fails_or_ends_frees_both_leases(intents: Intents) -> None:
    failing, ending = intents.channel(), intents.channel()
    await intents.steer(failing, fail_start=True)
    await intents.steer(ending, exit_after="pipeline_exit_after")
    for ref, what in ((failing, "a pipeline that does not start"), (ending, "a pipeline that ends by itself")):
        await _frees_both(intents, ref, what)


async def _frees_both(intents: Intents, ref: str, what: str) -> None:
    session = await intents.begin(ref)
    verdict, over = await intents.ended(session)
    demand(not verdict.rejected, "a reason other than a rejection", verdict.describe(), what)
    left = await intents.store.tuners_of(session.id)
    keys = intents.store.service(ref), *left
    await intents.released(*keys, bound="stop_release", since=over, what=f"release after {what}")
    await intents.steer(ref)
    retried = await intents.retry(ref, session.profile)
    intents.in_time(retried, over, f"the next start after {what}")


# --- renewal


@verifies("IN-RUN-04", isolation="quiet", nodes=ONE_OF_EACH, waits="renewal_watch + 2*busy_verdict")
async def test_channel_and_tuner_stay_taken_for_longer_than_a_lease_lives(intents: Intents, T: SpecTime) -> None:
    await intents.slots(1)
    first, second = intents.profiles[:2]
    held = await intents.running(profile=first)
    began = T.now()
    for seconds in (T.probe_past_ttl, T.renewal_watch):
        await T.sleep_until(began, seconds, "a lease that nobody renews to be gone")
        after = f"{seconds:.0f} s after the first start"
        rival = await intents.begin(held.target, second)
        expect(await intents.decided(rival), ended_busy(), why=f"the same channel {after}")
        other = await intents.begin(profile=first)
        expect(await intents.decided(other), ended_without_tuner(), why=f"another channel {after}")
        await intents.undisturbed(held, 2 * T.sample_every, f"the session {after}")


@verifies(
    "IN-RUN-05", isolation="quiet", nodes=ONE_OF_EACH, waits="start_ready + lost_lease_end + stop_release + quiet_watch"
)
async def test_a_session_that_lost_a_lease_ends_and_leaves_it_alone(intents: Intents, T: SpecTime) -> None:
    session = await intents.running()
    _, tuner = await lease_keys(intents, session)
    lost = T.now()
    await intents.store.ask("SET", tuner, "intruder", "PX", round(T.foreign_expiry * 1000))

    async def over() -> Answer | None:
        seen = await intents.poll(session)
        return seen if seen.terminal else None

    verdict, _ = await intents.comes(over, "lost_lease_end", since=lost, what="the end of the session")
    expect(verdict, ended("R_LEASE_EXPIRED"), why="a session whose tuner lease is another's")
    await T.sleep(T.quiet_watch, "the session to have cleaned up")
    expect((await intents.store.lease(tuner)).owner, "intruder", why=f"owner of {tuner} afterwards")


# --- stops


@verifies("IN-RUN-06", isolation="quiet", nodes=ONE_OF_EACH, waits="3*start_ready + 2*stop_release")
async def test_a_stopped_session_frees_channel_and_tuner_at_once(intents: Intents) -> None:
    await intents.slots(1)
    first, second = intents.profiles[:2]
    session = await intents.running(profile=first)
    since = intents.T.now()
    expect(await intents.stop(session), accepted(), status(202), why="a stop")

    async def over() -> bool:
        return (await intents.poll(session)).terminal

    await intents.comes(over, "stop_release", since=since, what="the stopped session terminal")
    again = await intents.retry(session.target, second)
    intents.in_time(again, since, "the channel for another profile")
    since = await intents.stopped(again.session)
    other = await intents.retry(intents.channel(), first)
    intents.in_time(other, since, "the tuner for another channel")


@verifies("IN-RUN-07", isolation="disruptive", nodes=ONE_OF_EACH, waits="start_ready + drain_max")
async def test_a_worker_ends_its_sessions_before_it_exits(intents: Intents) -> None:
    session = await intents.running()
    await drained(intents, intents.lone_workers[0])
    expect(await intents.poll(session), ended(), why="its session once the worker has exited")


@verifies("IN-RUN-08", waits="start_ready + late_ready_watch + repeat_soon")
async def test_a_stop_right_after_the_start_is_final(intents: Intents, T: SpecTime) -> None:
    session = await intents.begin()
    expect(await intents.stop(session), accepted(), status(202), why="a stop as soon as the 202 is read")
    await intents.ended(session)
    after = Course(intents, session)
    await intents.throughout(after.look, T.late_ready_watch, "a start that was not cancelled", every=T.sample_fast)
    after.never_ran("after the session has ended")
    expect(await intents.stop(session), accepted(), status(202), why="the same stop again")
    await T.sleep(T.repeat_soon, "the second stop to have an effect")
    expect(await intents.poll(session), STOPPED, why="after the second stop")
