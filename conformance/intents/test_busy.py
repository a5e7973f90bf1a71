"""Conflicting starts of one channel (seed 3.4 and 5.2): both accepted, one runs, the other ends as busy, for good."""

from functools import partial

from holdfast.check.finding import demand, expect
from holdfast.check.keyspace import GONE, Keyspace
from holdfast.check.plain import plain
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.intents.client import Intents, Session
from holdfast.conformance.intents.rivals import ends_busy, one_wins
from holdfast.conformance.intents.running import ONE_OF_EACH
from holdfast.conformance.intents.wire import Answer, accepted, ended_busy, shown


@verifies("IN-BUSY-01", waits="give_up")
async def test_a_conflicting_start_is_accepted_as_a_session_of_its_own(intents: Intents) -> None:
    first, second = intents.profiles[:2]
    holder = await intents.running(profile=first)
    answer = await intents.start(holder.target, second)
    expect(answer, accepted(), why="a start of a channel that is held, in another profile")
    demand(answer.session_id != holder.id, "a session of its own", answer.describe(), f"session {holder.id} runs")


# --- the holder and the other one


@verifies("IN-BUSY-02", waits="give_up + hold_watch")
async def test_the_holder_keeps_running_and_the_other_ends_as_busy(intents: Intents, T: SpecTime) -> None:
    first, second = intents.profiles[:2]
    holder = await intents.running(profile=first)

    async def look() -> None:
        expect(await intents.poll(holder), shown(*intents.running_states), why="the holder of the channel")

    async with intents.meanwhile(look, "the holder of the channel", every=T.sample_every):
        await ends_busy(intents, holder, second)
        await T.sleep(T.hold_watch, "the holder to be disturbed")


@verifies("IN-BUSY-02", part=2, waits="give_up + quiet_watch")
async def test_only_the_holder_starts_a_pipeline(intents: Intents, T: SpecTime) -> None:
    first, second = intents.profiles[:2]
    holder = await intents.running(profile=first)
    await ends_busy(intents, holder, second)
    expect(await intents.runs(holder.target), 1, why="pipelines of the channel after the rejection")
    await T.sleep(T.quiet_watch, "another pipeline to start")
    expect(await intents.runs(holder.target), 1, why="pipelines of the channel quiet_watch later")


# --- at once


@verifies("IN-BUSY-03", isolation="quiet", nodes=ONE_OF_EACH, waits="give_up + 12*busy_verdict")
async def test_the_verdict_is_visible_at_once(intents: Intents, T: SpecTime) -> None:
    spans = [await _conflict(intents, T) for _ in range(_wanted(intents))]
    samples = [span.hi - span.lo for span in spans]
    T.percentile("busy_verdict", samples, T.count("percentile") / 100, spans=spans)


def _wanted(intents: Intents) -> int:
    return intents.context.catalogue.requirements["IN-BUSY-03"].samples or 0


async def _conflict(intents: Intents, T: SpecTime) -> Moment:
    """Makes one conflict on a channel of its own; returns the time from the 202 to the poll that shows the verdict."""
    first, second = intents.profiles[:2]
    holder = await intents.running(profile=first)
    session = await intents.begin(holder.target, second)
    answer, seen = await intents.verdict(session, every=T.sample_fast)
    expect(answer, ended_busy(), why="a start of a channel that is held")
    T.at_most("lease_ttl", since=session.accepted, seen=seen, what="the verdict without waiting for a lease to run out")
    await intents.stopped(holder)
    return Moment(session.accepted.lo, seen.hi)


# --- the holder's lease


@verifies("IN-BUSY-04", waits="give_up + quiet_watch")
async def test_a_rejection_does_not_free_the_channel(intents: Intents, T: SpecTime) -> None:
    first, second, third = intents.profiles[:3]
    holder = await intents.running(profile=first)
    await ends_busy(intents, holder, second)
    await ends_busy(intents, holder, third)
    await intents.undisturbed(holder, T.quiet_watch, "the holder after two rejections")


@verifies("IN-BUSY-04", part=2, isolation="quiet", nodes=ONE_OF_EACH, waits="give_up + quiet_watch")
async def test_a_rejection_does_not_touch_the_holders_lease(intents: Intents, keys: Keyspace, T: SpecTime) -> None:
    """No renewal is due meanwhile, so whatever is set was set by the rejected session."""
    first, second = intents.profiles[:2]
    holder = await intents.running(profile=first)
    key, began = intents.store.service(holder.target), T.now()

    async def look() -> None:
        expect((await intents.store.lease(key)).owner, holder.id, why=f"owner of {key}")

    async with intents.meanwhile(look, "the holder's lease", every=T.sample_fast):
        await ends_busy(intents, holder, second)
        await T.sleep(T.quiet_watch, "the rejected session to clean up")
    events = await keys.events(key, since=began)
    # An attempt may have changed nothing, as one to set a key that is there already.
    touched = [each.kind for each in events if each.kind in GONE or (each.kind == "set" and not each.attempt)]
    demand(not touched, "neither a deletion nor a SET", plain(touched), key)


# --- for good


@verifies("IN-BUSY-05", waits="give_up + final_watch")
async def test_a_rejected_session_does_not_wait_for_the_channel(intents: Intents, T: SpecTime) -> None:
    rejected, verdict = await _rejected_and_alone(intents)

    async def look() -> None:
        _unchanged(await intents.poll(rejected), verdict, "the rejected session while its channel is free")

    await intents.throughout(look, T.final_watch, "the rejected session", every=T.sample_every)
    third = await intents.begin(rejected.target, intents.profiles[2])
    expect(await intents.decided(third), shown(*intents.running_states), why="control: a new start of the channel")


@verifies("IN-BUSY-05", part=2, waits="give_up + hold_watch")
async def test_a_rejected_start_that_comes_again_takes_nothing(intents: Intents, T: SpecTime) -> None:
    rejected = await _comes_again(intents, T)
    key = intents.store.service(rejected.target)
    expect((await intents.store.lease(key)).owner, "", why=f"owner of {key} after the start came again")


@verifies("IN-BUSY-05", part=3, waits="give_up + hold_watch")
async def test_a_rejected_start_that_comes_again_starts_no_pipeline(intents: Intents, T: SpecTime) -> None:
    rejected = await _comes_again(intents, T)
    expect(await intents.runs(rejected.target), 1, why="pipelines of the channel: that of the holder alone")


async def _rejected_and_alone(intents: Intents) -> tuple[Session, Answer]:
    """Lets a session be rejected and stops the one that held the channel; returns the rejected one and its verdict."""
    first, second = intents.profiles[:2]
    holder = await intents.running(profile=first)
    rejected, verdict = await ends_busy(intents, holder, second)
    await intents.stopped(holder)
    return rejected, verdict


async def _comes_again(intents: Intents, T: SpecTime) -> Session:
    """Delivers a rejected start again once the channel is free, and judges that the verdict stays as it is."""
    rejected, verdict = await _rejected_and_alone(intents)
    key = intents.store.service(rejected.target)

    async def free() -> bool:
        return not (await intents.store.lease(key)).there

    with intents.context.arranging("IN-RUN-06"):
        await T.until(free, give_up=T.give_up, what="the channel to be free", every=T.sample_fast)
    await intents.redeliver(rejected)

    async def look() -> None:
        _unchanged(await intents.poll(rejected), verdict, "the rejected session after its start came again")

    await intents.throughout(look, T.hold_watch, "the rejected session", every=T.sample_every)
    return rejected


def _unchanged(seen: Answer, verdict: Answer, why: str) -> None:
    same = (seen.state, seen.reason) == (verdict.state, verdict.reason)
    demand(same, verdict.describe(), seen.describe(), why)


# --- at the same time


@verifies("IN-BUSY-06", isolation="quiet", nodes=ONE_OF_EACH, waits="give_up + 6*quiet_watch + 6*start_ready")
async def test_of_two_starts_at_once_one_wins(intents: Intents, T: SpecTime) -> None:
    await _rounds(intents, T)


@verifies(
    "IN-BUSY-06",
    part=2,
    isolation="quiet",
    nodes={"api": 1, "worker": 2},
    waits="give_up + 6*quiet_watch + 6*start_ready",
)
async def test_of_two_starts_at_once_one_wins_with_two_workers(intents: Intents, T: SpecTime) -> None:
    await _rounds(intents, T)


async def _rounds(intents: Intents, T: SpecTime) -> None:
    rounds = [partial(_round, intents, T)] * T.count("conflict_rounds")
    await intents.rounds(rounds, sessions=2)


async def _round(intents: Intents, T: SpecTime) -> None:
    """Starts a channel in two profiles at once and judges that one of the two sessions runs, now and later."""
    ref = intents.channel()
    rivals = await intents.burst([partial(intents.begin, ref, profile) for profile in intents.profiles[:2]])
    winner = await one_wins(intents, rivals, "two starts of a channel at once")
    await T.sleep(T.quiet_watch, "another verdict to come")
    still = await one_wins(intents, rivals, "two starts of a channel at once, quiet_watch later")
    expect(still.id, winner.id, why="the session that runs quiet_watch later")
    await intents.stopped(winner)


# --- other channels


@verifies("IN-BUSY-07", waits="give_up")
async def test_a_held_channel_does_not_concern_another(intents: Intents) -> None:
    sessions = [await intents.begin(profile=intents.profiles[0]) for _ in range(2)]
    demand(sessions[0].id != sessions[1].id, "two sessions", sessions[1].answer.describe(), "two channels")
    for session in sessions:
        expect(await intents.decided(session), shown(*intents.running_states), why="one of two channels")
    for session in sessions:
        expect(await intents.poll(session), shown(*intents.running_states), why="the channel once both run")
