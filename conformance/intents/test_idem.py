"""Known keys (seed 3.1 step 3, 3.3): the same start is answered with the same session, as long as that lives."""

from collections.abc import Mapping
from typing import Any

from holdfast.check.finding import Inconclusive, demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.conformance.intents import wire
from holdfast.conformance.intents.client import Intents, Session
from holdfast.conformance.intents.keys import IntentKeys
from holdfast.conformance.intents.running import ONE_OF_EACH
from holdfast.conformance.intents.wire import Answer, accepted, shown

# Fields of a body that a target may refuse to know.
OPTIONAL: Mapping[str, Any] = {"correlationId": "another", "params": {"x": "1"}, "idempotencyKey": "a"}


async def _is_known(intents: Intents, session: Session, why: str, **how: Any) -> None:
    """Sends the start of a session again and judges that it is answered with this session."""
    _judge(await intents.start(session.target, session.profile, **how), session, await intents.poll(session), why)


def _judge(answer: Answer, session: Session, seen: Answer, why: str) -> None:
    """Judges that the answer names the session, unless that had ended by the time of this poll."""
    if answer.status == 202 and answer.session_id != session.id and seen.terminal:
        raise Inconclusive(f"arrangement: session {session.id} ended by itself ({seen.describe()})")
    expect(answer, accepted(session.id), why=why)


@verifies("IN-IDEM-01", waits="give_up")
async def test_a_repeat_gets_the_session_from_the_first_moment_on(intents: Intents, T: SpecTime) -> None:
    session = await intents.begin(headers={"Connection": "close"})  # so that the repeat goes over another connection
    await _is_known(intents, session, "at once, on a second connection")
    runs = intents.beside(intents.ready(session))
    while not runs.done():
        await _is_known(intents, session, "before it runs")
        await T.sleep(T.sample_fast, "the next repeat")
    await runs
    await _is_known(intents, session, "once it runs")


@verifies("IN-IDEM-01", part=2, waits="slow_start + give_up")
async def test_a_repeat_gets_the_session_while_its_pipeline_starts(intents: Intents, T: SpecTime) -> None:
    session, repeats = await intents.starting(), 0
    while True:
        answer = await intents.start(session.target, session.profile)
        if (seen := await intents.poll(session)).state not in wire.STARTING:
            break
        expect(answer, accepted(session.id), why="while its pipeline starts")
        repeats += 1
        await T.sleep(T.sample_fast, "the next repeat")
    if not repeats:
        raise Inconclusive(f"the pipeline was not steered: {seen.describe()} already")
    await intents.ready(session)


@verifies("IN-IDEM-02", isolation="quiet", nodes=ONE_OF_EACH, waits="quiet_watch + give_up")
async def test_a_replay_persists_and_publishes_nothing(intents: Intents, T: SpecTime) -> None:
    session = await intents.running()
    with intents.context.arranging("IN-QUEUE-03"):
        events = await intents.store.events()
        kind = next((event.kind for event in events if event.session_id == session.id), "")
        demand(kind, "an event that names the session", f"{len(events)} others", "the bus after a start")
    before = await _recorded(intents.store, kind)
    for number in range(T.count("replay_count")):
        await _is_known(intents, session, f"replay {number + 1}")
    expect(await _recorded(intents.store, kind), before, why="records, mappings and start events after the replays")
    await T.sleep(T.quiet_watch, "anything to appear after the replays")
    expect(await _recorded(intents.store, kind), before, why="the same quiet_watch later")


async def _recorded(store: IntentKeys, kind: str) -> dict[str, list[str]]:
    """Returns the names of all records and mappings, and the ids of all events of this kind."""
    return {
        "records": sorted(await store.sessions()),
        "mappings": sorted(await store.mappings()),
        "start events": [event.id for event in await store.events() if event.kind == kind],
    }


@verifies("IN-IDEM-03", waits="give_up")
async def test_another_user_shares_the_session(intents: Intents) -> None:
    session = await intents.running()
    await _is_known(intents, session, "the same start of another user", authorization=intents.bearer("write2"))


@verifies("IN-IDEM-03", waits="give_up")
async def test_headers_neither_split_nor_merge_sessions(intents: Intents) -> None:
    session = await intents.running()
    odd = {"User-Agent": "another/2.0", "X-Request-ID": "another-request", "Idempotency-Key": "b"}
    for name, value in odd.items():
        await _is_known(intents, session, f"with {name}: {value}", headers={name: value})
    other = await intents.start(intents.channel(), session.profile, headers=odd)
    expect(other, accepted(), why="another channel with the same headers")
    demand(other.session_id != session.id, "another session", other.describe(), "another channel")


@verifies("IN-IDEM-03", waits="give_up")
async def test_what_else_a_body_says_neither_splits_nor_merges_sessions(intents: Intents) -> None:
    session = await intents.running()
    for name, value in OPTIONAL.items():
        answer = await intents.post(intents.start_body(session.target, session.profile, **{name: value}))
        if answer.status != 400:  # a target need not know the field
            _judge(answer, session, await intents.poll(session), f"with another {name}")
    await _is_known(intents, session, "control: without any of them")


@verifies("IN-IDEM-03")
async def test_a_key_of_the_client_does_not_merge_channels(intents: Intents) -> None:
    bodies = [intents.start_body(intents.channel(), idempotencyKey="c") for _ in range(2)]
    await intents.places()
    answers = [await intents.post(body) for body in bodies]
    if any(answer.status == 400 for answer in answers):
        for body in bodies:
            del body["idempotencyKey"]
        answers = [await intents.post(body, headers={"Idempotency-Key": "c"}) for body in bodies]
    for answer in answers:
        expect(answer, accepted(), why="the start of a channel with a key of the client's")
    ids = {answer.session_id for answer in answers}
    demand(len(ids) == len(answers), "two sessions", f"one for both, {answers[0].session_id}", "two channels, one key")


@verifies("IN-IDEM-04", waits="repeat_late + give_up")
async def test_a_session_that_runs_is_found_however_late_the_repeat_is(intents: Intents, T: SpecTime) -> None:
    session = await intents.running()
    for name in ("repeat_soon", "renewal_due", "probe_past_ttl", "repeat_late"):
        await T.sleep_until(session.accepted, getattr(T, name), f"a repeat at {name}")
        await _is_known(intents, session, f"a repeat {name} after the first start")
        expect(await intents.poll(session), shown(*intents.running_states), why=f"the session at {name}")


@verifies("IN-IDEM-05", waits="2*give_up")
async def test_a_stopped_session_does_not_capture_new_starts(intents: Intents) -> None:
    session = await intents.running()
    await intents.stopped(session)
    await intents.retry(session.target, session.profile, unlike=session)


@verifies("IN-IDEM-05", waits="2*give_up")
async def test_a_rejected_session_does_not_capture_new_starts(intents: Intents) -> None:
    holder = await intents.running()
    rejected = await intents.busy(holder)
    await intents.stopped(holder)
    await intents.retry(rejected.target, rejected.profile, unlike=rejected)
