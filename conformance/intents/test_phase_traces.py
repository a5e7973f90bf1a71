"""What phase 1 leaves behind (seed 4 and 1): nothing of a conflict, of a replay, or of a start that failed."""

from holdfast.check.finding import expect
from holdfast.check.verifies import verifies
from holdfast.conformance.intents.bus import broken
from holdfast.conformance.intents.client import PHASE_1, Intents, Session
from holdfast.conformance.intents.running import ONE_OF_EACH
from holdfast.conformance.intents.wire import accepted
from holdfast.conformance.shared.wire import moment, status


@verifies("IN-PHASE-08", part=2, isolation="disruptive", nodes=ONE_OF_EACH, settings=PHASE_1, waits="quiet_watch")
async def test_a_conflict_leaves_no_trace_and_the_api_takes_no_tuner(intents: Intents) -> None:
    first, second = intents.profiles[:2]
    await intents.pause_workers()
    session = await intents.begin(profile=first)
    expect(await intents.store.leases("tuner"), {}, why="tuner leases before a worker saw the session")

    async def conflict() -> None:
        expect(await intents.start(session.target, second), status(409), why="a start of a channel that is held")

    await intents.leaves_no_trace(conflict, "a conflict")


@verifies(
    "IN-PHASE-08",
    part=3,
    isolation="disruptive",
    nodes=ONE_OF_EACH,
    settings=PHASE_1,
    waits="give_up + probe_past_ttl",
)
async def test_a_session_replayed_after_its_lease_ran_out_still_runs(intents: Intents) -> None:
    session = await _replayed_late(intents)
    await intents.resume_workers()
    await intents.ready(session, owner="IN-PHASE-08")


@verifies(
    "IN-PHASE-08",
    part=4,
    isolation="disruptive",
    nodes=ONE_OF_EACH,
    settings=PHASE_1,
    waits="give_up + probe_past_ttl",
)
async def test_a_replay_after_the_lease_ran_out_leaves_no_other_owner(intents: Intents) -> None:
    session = await _replayed_late(intents)
    key = intents.store.service(session.target)
    expect((await intents.store.lease(key)).owner, "", session.id, why=f"owner of {key} after the replay")


async def _replayed_late(intents: Intents) -> Session:
    """Starts a channel that no worker takes up, and again when its lease has run out; judges that it is replayed."""
    await intents.pause_workers()
    session = await intents.begin()
    await intents.T.sleep_until(session.accepted, intents.T.probe_past_ttl, "the lease of the API to run out")
    again = await intents.start(session.target, session.profile)
    expect(again, accepted(session.id), why="the same start after its lease ran out")
    return session


@verifies("IN-PHASE-08", part=5, isolation="quiet", nodes=ONE_OF_EACH, settings=PHASE_1, waits="give_up")
async def test_an_intent_that_cannot_be_published_gives_its_lease_back(intents: Intents) -> None:
    ref = intents.channel()
    key = intents.store.service(ref)
    await intents.running()  # makes the bus, where no worker has
    async with broken(intents):
        answer = await intents.start(ref)
        expect(answer, status(503), why="a start while nothing can be published")
    # The row sets no time for it; what decides is that the lease is not left to run out.
    await intents.released(key, bound="stop_release", since=moment(answer), what="release after the 503")
