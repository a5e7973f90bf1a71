"""The tuner lease (seed 3.2 steps 2 and 4): a slot for each live session, and a verdict of its own if none is free."""

from functools import partial

from holdfast.check.finding import demand, expect
from holdfast.check.keyspace import Keyspace
from holdfast.check.plain import plain
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.intents.client import Intents, Session
from holdfast.conformance.intents.running import ONE_OF_EACH
from holdfast.conformance.intents.wire import ended_without_tuner, shown

# --- a slot for each session


@verifies("IN-TUNER-01", isolation="quiet", nodes=ONE_OF_EACH, waits="give_up")
async def test_as_many_channels_run_as_there_are_slots(intents: Intents) -> None:
    await _three_run(intents)


@verifies("IN-TUNER-01", part=2, isolation="quiet", nodes=ONE_OF_EACH, waits="give_up")
async def test_each_session_holds_one_slot_of_its_own(intents: Intents) -> None:
    for session in await _three_run(intents):
        held = await intents.store.tuners_of(session.id)
        demand(len(held) == 1, "one tuner lease of the session", plain(held), f"session {session.id}")
        slot = held[0].removeprefix(intents.store.roots("tuner")[0])
        # Where Holdfast does not start the workers it knows how many slots there are, and not what they are called.
        configured = slot in {"0", "1", "2"} if intents.owns_deployment else slot.isdecimal()
        demand(configured, "the number of a configured slot", held[0], f"session {session.id}")


@verifies("IN-TUNER-01", part=3, isolation="quiet", nodes=ONE_OF_EACH, waits="give_up")
async def test_slots_are_those_that_the_worker_was_given(intents: Intents) -> None:
    await intents.restart(intents.worker, tuner_slots="2,5")
    sessions = await _run(intents, 2)
    leases = await intents.store.leases("tuner")
    expect(set(leases), {intents.store.tuner(2), intents.store.tuner(5)}, why="tuner leases with slots 2 and 5")
    expect(set(leases.values()), {session.id for session in sessions}, why="owners of the tuner leases")


async def _three_run(intents: Intents) -> list[Session]:
    await intents.slots(3)
    return await _run(intents, 3)


async def _run(intents: Intents, count: int) -> list[Session]:
    """Starts so many channels and judges that all run at the same time; returns their sessions."""
    sessions = [await intents.begin() for _ in range(count)]
    for session in sessions:
        verdict = await intents.decided(session)
        expect(verdict, shown(*intents.running_states), why=f"one of {count} channels, with {count} slots")
    for session in sessions:
        expect(await intents.poll(session), shown(*intents.running_states), why="the channel once all of them run")
    return sessions


# --- no slot is free


@verifies("IN-TUNER-02", isolation="quiet", nodes=ONE_OF_EACH, waits="give_up")
async def test_a_start_without_a_free_tuner_is_rejected_as_such(intents: Intents, T: SpecTime) -> None:
    await _all_slots_taken(intents)
    session = await intents.begin()
    seen = await _rejected(intents, session)
    T.at_most("busy_verdict", since=session.accepted, seen=seen, what="the verdict that no tuner is free")


@verifies("IN-TUNER-03", isolation="quiet", nodes=ONE_OF_EACH, waits="give_up + lease_ttl")
async def test_a_channel_without_a_tuner_is_free_for_the_next_start(intents: Intents) -> None:
    holder = await _all_slots_taken(intents)
    first, second = intents.profiles[:2]
    session = await intents.begin(profile=first)
    over = await _rejected(intents, session)
    await intents.stopped(holder)
    retried = await intents.retry(session.target, second)
    intents.in_time(retried, over, "the next start of a channel for which there was no tuner")
    expect(await intents.poll(session), ended_without_tuner(), why="the rejected session in the end")


@verifies("IN-TUNER-03", part=2, isolation="quiet", nodes=ONE_OF_EACH, waits="give_up")
async def test_the_service_lease_is_given_back_without_a_tuner(intents: Intents) -> None:
    await _all_slots_taken(intents)
    session = await intents.begin()
    over = await _rejected(intents, session)
    key = intents.store.service(session.target)
    await intents.released(key, bound="no_tuner_release", since=over, what="release after REJECTED_NO_TUNER")


@verifies("IN-TUNER-03", part=3, isolation="quiet", nodes=ONE_OF_EACH, waits="give_up + quiet_watch")
async def test_no_pipeline_is_started_without_a_tuner(intents: Intents, T: SpecTime) -> None:
    await _all_slots_taken(intents)
    session = await intents.begin()
    await _rejected(intents, session)
    expect(await intents.runs(session.target), 0, why="pipelines of the channel after the rejection")
    await T.sleep(T.quiet_watch, "a pipeline to start")
    expect(await intents.runs(session.target), 0, why="pipelines of the channel quiet_watch later")


async def _all_slots_taken(intents: Intents) -> Session:
    """Lets a session hold the only slot that is free; returns it."""
    await intents.slots(1)
    return await intents.running(profile=intents.profiles[0])


async def _rejected(intents: Intents, session: Session) -> Moment:
    """Judges that the session is rejected for lack of a tuner and for nothing else; returns when that was seen."""
    verdict, seen = await intents.verdict(session)
    expect(verdict, ended_without_tuner(), why="a start while no slot is free")
    demand(not verdict.busy, "a verdict other than that of a held channel", verdict.describe(), "no slot is free")
    return seen


# --- recordings


@verifies("IN-TUNER-04", isolation="quiet", nodes=ONE_OF_EACH, waits="give_up")
async def test_recordings_run_while_no_slot_is_free(intents: Intents, T: SpecTime) -> None:
    await _all_slots_taken(intents)
    await _two_offsets_run(intents, T)


@verifies("IN-TUNER-04", part=2, isolation="quiet", nodes=ONE_OF_EACH, waits="give_up")
async def test_a_recording_takes_no_lease(intents: Intents, keys: Keyspace, T: SpecTime) -> None:
    await _all_slots_taken(intents)
    held, began = await intents.store.leases(), T.now()
    await _two_offsets_run(intents, T)
    changed = {event.key for event in await keys.events(f"{intents.store.roots('lease')[0]}*", since=began)}
    demand(changed <= set(held), "no lease but those of the live session", plain(sorted(changed)), "two recordings")


async def _two_offsets_run(intents: Intents, T: SpecTime) -> None:
    recording = intents.recording()
    begin = partial(intents.begin_vod, recording)
    sessions = [await begin(0), await begin(T.count("vod_new_ms"))]
    for session in sessions:
        verdict = await intents.decided(session)
        expect(verdict, shown(*intents.running_states), why="a recording while no slot is free")
    for session in sessions:
        expect(await intents.poll(session), shown(*intents.running_states), why="two offsets side by side")
