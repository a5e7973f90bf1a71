"""The API enqueues (seed 3.1 steps 4-6, section 2): persist, publish, answer, and take no lease.

Whether a step comes before another is seen from outside: the record when an event arrives, the event when an answer
does. Rows that ask for a worker that is gone or suspended have a deployment of their own.
"""

import json
import uuid
from typing import Any

from holdfast.check.faults import Faults
from holdfast.check.finding import Inconclusive, demand, expect
from holdfast.check.keyspace import KeyEvent, Keyspace
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.intents import wire
from holdfast.conformance.intents.bus import Arrival, broken, last_of, note_arrivals, told
from holdfast.conformance.intents.client import Intents, Session
from holdfast.conformance.intents.keys import IntentKeys, Lease
from holdfast.conformance.intents.running import ONE_OF_EACH, lease_keys
from holdfast.conformance.intents.wire import Answer, accepted, ended, ended_without_tuner, is_new, refused, shown
from holdfast.conformance.shared.wire import status

# --- IN-QUEUE-01: the record


@verifies("IN-QUEUE-01", isolation="quiet", nodes=ONE_OF_EACH, busy=True, waits="2*order_reps*sample_fast")
async def test_a_session_can_be_polled_as_soon_as_its_id_is_known(intents: Intents, T: SpecTime) -> None:
    for number in range(T.count("order_reps")):
        session = await intents.begin()
        expect(await intents.poll(session), status(200, 410), why=f"start {number + 1}, as soon as the 202 is read")


@verifies("IN-QUEUE-01", waits="give_up + repeat_soon")
async def test_a_session_that_has_ended_can_still_be_polled(intents: Intents, T: SpecTime) -> None:
    session = await intents.running()
    with intents.context.arranging("IN-RUN-06"):
        expect(await intents.stop(session), status(202), why="a stop")

    async def over() -> Answer | None:
        seen = await intents.poll(session)
        return seen if seen.terminal or seen.status not in (200, 410) else None

    with intents.context.arranging("IN-RUN-06"):
        seen, stopped = await T.until(over, give_up=T.give_up, what="the session to end")
    _tells_its_end(seen, "at once")
    await T.sleep_until(stopped, T.repeat_soon, "the next poll")
    _tells_its_end(await intents.poll(session), "repeat_soon later")


def _tells_its_end(seen: Answer, when: str) -> None:
    expect(seen, ended(), why=f"a session that was stopped, {when}")
    demand(seen.reason, "a reason", seen.describe(), f"a session that was stopped, {when}")


@verifies("IN-QUEUE-01")
async def test_a_session_that_never_was_is_not_found(intents: Intents) -> None:
    expect(await intents.poll(str(uuid.uuid4())), status(404), why="an id that no start was answered with")


@verifies("IN-QUEUE-01", part=2, isolation="disruptive", nodes=ONE_OF_EACH, busy=True, waits="2*order_reps*sample_fast")
async def test_a_session_that_no_worker_has_seen_is_new(intents: Intents, T: SpecTime) -> None:
    await intents.pause_workers()
    for number in range(T.count("order_reps")):
        session = await intents.begin()
        expect(await intents.poll(session), is_new(), why=f"start {number + 1}, as soon as the 202 is read")


@verifies("IN-QUEUE-01", part=3, isolation="disruptive", nodes=ONE_OF_EACH)
async def test_the_record_of_a_session_that_no_worker_has_seen_is_new(intents: Intents) -> None:
    await intents.pause_workers()
    session = await intents.begin()
    record = await intents.store.session(session.id)
    expect(record.get("state"), "NEW", why=f"field state of the record of session {session.id}")


# --- IN-QUEUE-02 and -03: the event


@verifies("IN-QUEUE-02", isolation="quiet", nodes=ONE_OF_EACH, busy=True, waits="2*order_reps*sample_fast")
async def test_the_record_is_there_before_the_event_and_that_before_the_answer(intents: Intents, T: SpecTime) -> None:
    await _keeps_the_order(intents, T.count("order_reps"))


@verifies("IN-QUEUE-02", part=2, isolation="disruptive", nodes=ONE_OF_EACH, waits="few_starts*10*store_latency")
async def test_the_order_is_kept_while_the_store_is_slow(intents: Intents, T: SpecTime, faults: Faults) -> None:
    async with faults.during("delay", f"{intents.apis[0]}-redis", seconds=T.store_latency):
        await _keeps_the_order(intents, T.count("few_starts"))


async def _keeps_the_order(intents: Intents, count: int) -> None:
    """Starts so many channels and judges the order in which record, event and answer of each came."""
    store, sessions = intents.store, dict[str, Session]()
    last = last_of(await store.events())
    arrived = list[Arrival]()
    intents.beside(note_arrivals(store, last, arrived))
    for _ in range(count):
        session = await intents.begin(profile=intents.profiles[1])
        published = await store.events(after=last)
        named = any(event.session_id == session.id for event in published)
        demand(named, "an event that names the session", told(published), f"the bus when {session.id} was answered")
        last, sessions[session.id] = last_of(published), session

    async def all_arrived() -> bool:
        return {event.session_id for event, _ in arrived} >= sessions.keys()

    await intents.T.until(all_arrived, give_up=intents.T.give_up, what="the suite to have read all events")
    for event, record in arrived:
        if started := sessions.get(event.session_id):
            _is_complete(record, started)


def _is_complete(record: dict[str, Any], session: Session) -> None:
    text = json.dumps(record)
    complete = session.target in text and (session.profile or "") in text
    wanted = f"a record with {session.target} and {session.profile}"
    demand(complete, wanted, text if record else "no record", f"session {session.id} when its event arrived")


@verifies("IN-QUEUE-03", isolation="quiet", nodes=ONE_OF_EACH, waits="quiet_watch")
async def test_a_live_start_makes_one_event_that_tells_channel_and_profile(intents: Intents) -> None:
    ref, profile = intents.channel(), intents.profiles[1]
    await _makes_one_event(intents, intents.start_body(ref, profile), {"serviceRef": ref, "profileId": profile})


@verifies("IN-QUEUE-03", isolation="quiet", nodes=ONE_OF_EACH, waits="quiet_watch")
async def test_a_start_of_a_recording_makes_one_event_that_tells_the_offset_too(intents: Intents, T: SpecTime) -> None:
    recording, profile, ms = intents.recording(), intents.profiles[1], T.count("vod_first_ms")
    wanted = {"recordingId": recording, "profileId": profile, "startMs": ms}
    await _makes_one_event(intents, intents.vod_body(recording, ms, profile), wanted)


async def _makes_one_event(intents: Intents, body: Any, wanted: dict[str, Any]) -> None:
    await intents.places()
    last = last_of(await intents.store.events())
    answer = await intents.post(body)
    with intents.context.arranging("IN-QUEUE-04"):
        expect(answer, accepted(), why="a valid start")
    await intents.T.sleep(intents.T.quiet_watch, "further events")
    published = await intents.store.events(after=last)
    starts = [event for event in published if event.kind == wire.START_EVENT]
    demand(len(starts) == 1, f"one {wire.START_EVENT}", told(published), "the bus after one start")
    wanted = {"sessionId": answer.session_id, **wanted}
    expect({name: starts[0].data.get(name) for name in wanted}, wanted, why=f"the data of {wire.START_EVENT}")


# --- IN-QUEUE-04 and -05: the answer


@verifies("IN-QUEUE-04")
async def test_a_start_and_its_repeat_are_202_with_the_session(intents: Intents) -> None:
    ref = intents.channel()
    for what in ("a start", "its repeat"):
        _is_accepted(await intents.start(ref), what)


@verifies("IN-QUEUE-04")
async def test_a_start_of_a_recording_is_202_with_the_session(intents: Intents) -> None:
    await intents.places()
    _is_accepted(await intents.vod(intents.recording()), "a start of a recording")


def _is_accepted(answer: Answer, what: str) -> None:
    expect(answer, accepted(), why=what)
    expect(answer.media_type, "application/json", why=f"Content-Type of the answer to {what}")


@verifies("IN-QUEUE-04", part=2, waits="slow_start")
async def test_the_answer_does_not_wait_for_the_pipeline(intents: Intents, T: SpecTime) -> None:
    ref = intents.channel()
    await intents.steer(ref, start_delay="slow_start")
    session = await intents.begin(ref)
    seen = await intents.poll(session)
    T.at_most("accept_fast", since=session.sent, seen=session.accepted, what="the answer to a start")
    expect(seen, shown(*wire.NEW, *wire.STARTING), why="the session as soon as the 202 is read")


@verifies("IN-QUEUE-05", isolation="quiet", nodes=ONE_OF_EACH, waits="give_up")
async def test_a_start_is_202_while_all_slots_are_taken(intents: Intents) -> None:
    await intents.slots(1)
    holder = await intents.running()
    ref = intents.channel()
    answer = await intents.start(ref)
    expect(answer, accepted(), why="a start while all slots are taken")
    demand(answer.session_id != holder.id, "a new session", answer.describe(), "another channel")
    with intents.context.arranging("IN-TUNER-02"):  # or a slot was left, and nothing is shown
        expect(await intents.decided(_named(answer, ref)), ended_without_tuner(), why="the session without a slot")


@verifies("IN-QUEUE-05", part=2, isolation="disruptive", nodes=ONE_OF_EACH)
async def test_a_start_is_202_while_no_worker_is_alive(intents: Intents) -> None:
    for worker in intents.lone_workers:
        await intents.kill(worker)
    ref = intents.channel()
    answer = await intents.start(ref)
    expect(answer, accepted(), why="a start while no worker is alive")
    expect(await intents.poll(answer.session_id), is_new(), why="its session")


@verifies("IN-QUEUE-05", part=3, isolation="disruptive", nodes=ONE_OF_EACH, waits="api_ready + give_up")
async def test_a_start_is_202_while_no_slot_is_configured(intents: Intents) -> None:
    for name in {*intents.apis, *intents.workers}:
        await intents.restart(name, tuner_slots="")
    ref = intents.channel()
    answer = await intents.start(ref)
    expect(answer, accepted(), why="a start while API and worker have an empty list of slots")
    expect(await intents.decided(_named(answer, ref)), ended_without_tuner(), why="its session")


@verifies("IN-QUEUE-05", part=3, isolation="disruptive", nodes=ONE_OF_EACH, waits="api_ready + give_up")
async def test_the_api_needs_no_list_of_slots(intents: Intents) -> None:
    for worker in intents.lone_workers:
        await intents.restart(worker, tuner_slots="0,1")
    for api in intents.apis:
        await intents.restart(api, unset="tuner_slots")
    ref = intents.channel()
    answer = await intents.start(ref)
    expect(answer, accepted(), why="a start while the worker has two slots, and the API no list of them")
    expect(await intents.decided(_named(answer, ref)), shown(*intents.running_states), why="its session")


def _named(answer: Answer, ref: str) -> Session:
    return Session(answer.session_id, ref, None, answer)


# --- IN-QUEUE-06: no lease


@verifies("IN-QUEUE-06", isolation="disruptive", nodes=ONE_OF_EACH, waits="quiet_watch")
async def test_the_api_takes_no_lease(intents: Intents, T: SpecTime, keys: Keyspace) -> None:
    await intents.pause_workers()
    began = T.now()
    for _ in range(T.count("few_starts")):
        expect(await intents.start(intents.channel()), accepted(), why="a start while the worker is suspended")
    await T.sleep(T.quiet_watch, "a lease")
    _is_untouched(await _of_leases(intents.store, keys, began), f"after {T.count('few_starts')} starts")


@verifies("IN-QUEUE-06", isolation="disruptive", nodes=ONE_OF_EACH, waits="give_up + quiet_watch")
async def test_the_api_leaves_the_leases_of_a_running_session_alone(
    intents: Intents, T: SpecTime, keys: Keyspace
) -> None:
    session = await intents.running()
    paused = T.now()
    await intents.pause_workers()
    await T.sleep(T.sample_every, "what the worker had sent")
    held = await _held(intents, session)
    began = T.now()

    repeat = await intents.start(session.target, session.profile)
    expect(repeat, accepted(session.id), why="a repeat")
    other = await intents.start(session.target, intents.profiles[1])
    expect(other, accepted(), why="a start in another profile")
    expect(await intents.stop(session), status(202), why="a stop")

    async def only_fall() -> None:
        for key, before in held.items():
            lease = await intents.store.lease(key)
            if T.now().hi - paused.lo > T.lease_left:
                raise Inconclusive("the leases may have run out while they were watched")
            expect(lease.owner, session.id, why=f"owner of {key} after a repeat, another start and a stop")
            falls = (lease.left or 0.0) <= (before.left or 0.0)
            demand(falls, f"{key} with at most {before.left} s left", lease.describe(), "nobody renews it")
            held[key] = lease

    await intents.throughout(only_fall, T.quiet_watch, "the leases of a suspended worker", every=T.sample_fast)
    _is_untouched(await _of_leases(intents.store, keys, began), "after a repeat, another start and a stop")


async def _held(intents: Intents, session: Session) -> dict[str, Lease]:
    """Returns both leases of a running session, by name."""
    held = {key: await intents.store.lease(key) for key in await lease_keys(intents, session)}
    with intents.context.arranging("IN-DEDUP-01"):
        owners = {lease.owner for lease in held.values()}
        expect(owners, {session.id}, why="owners of the leases of a running session")
    return held


async def _of_leases(store: IntentKeys, keys: Keyspace, since: Moment) -> list[KeyEvent]:
    """Returns what happened to service and tuner leases."""
    return [event for root in store.roots("service", "tuner") for event in await keys.events(f"{root}*", since=since)]


def _is_untouched(seen: list[KeyEvent], why: str) -> None:
    demand(not seen, "no change of a lease", "; ".join(f"{event.kind} {event.key}" for event in seen), why)


# --- IN-QUEUE-07 and -08: no store, no bus, no worker


@verifies("IN-QUEUE-07", isolation="disruptive", nodes=ONE_OF_EACH, waits="store_fail_answer + give_up")
async def test_a_start_is_503_while_the_store_is_away(intents: Intents, T: SpecTime, faults: Faults) -> None:
    ref = intents.channel()
    async with faults.during("cut", f"{intents.apis[0]}-redis"):
        answer = await intents.start(ref)
        expect(answer, refused(503), why="a start while the API is cut off from Redis")
        sent, received = Moment(answer.sent, answer.sent), Moment(answer.received, answer.received)
        T.at_most("store_fail_answer", since=sent, seen=received, what="the answer to it")
    await _runs_now(intents, ref)


@verifies("IN-QUEUE-07", part=2, isolation="quiet", nodes=ONE_OF_EACH, waits="give_up")
async def test_a_start_is_503_while_it_cannot_be_published(intents: Intents) -> None:
    await intents.stopped(await intents.running())  # by then there is a bus
    ref = intents.channel()
    async with broken(intents):
        expect(await intents.start(ref), refused(503), why="a start while nothing can be published")
    await _runs_now(intents, ref)


async def _runs_now(intents: Intents, ref: str) -> None:
    """Judges that the channel can be started now: no session that nobody starts stands in its way."""
    session = await intents.begin_after(ref)
    expect(await intents.decided(session), shown(*intents.running_states), why="the start once all is as before")


@verifies("IN-QUEUE-08", isolation="disruptive", nodes=ONE_OF_EACH, waits="drain_max + probe_past_ttl + give_up")
async def test_an_accepted_intent_waits_for_a_worker(intents: Intents, T: SpecTime) -> None:
    await _end_workers(intents)
    session = await intents.begin()

    async def look() -> None:
        expect(await intents.poll(session), is_new(), why="a session while no worker is alive")

    await intents.throughout(look, T.probe_past_ttl, "the session until probe_past_ttl", every=T.sample_every)
    started = [await intents.restart(worker) for worker in intents.workers]

    async def runs() -> bool:
        seen = await intents.poll(session)
        demand(not seen.terminal, "a session that lives", seen.describe(), "a worker is there again")
        return seen.state in intents.running_states

    await intents.comes(runs, "recover_ready", since=started[0], what="the session READY")


@verifies("IN-QUEUE-08", part=2, isolation="disruptive", nodes=ONE_OF_EACH, waits="drain_max + quiet_watch")
async def test_an_intent_that_waits_holds_no_lease(intents: Intents, T: SpecTime) -> None:
    await _end_workers(intents)
    session = await intents.begin()

    async def look() -> None:
        owners = (await intents.store.leases()).values()
        demand(session.id not in owners, "no lease", f"one of session {session.id}", "no worker is alive")

    await intents.throughout(look, T.quiet_watch, "the leases while no worker is alive", every=T.sample_every)


async def _end_workers(intents: Intents) -> None:
    """Ends all workers with SIGTERM."""
    for worker in intents.lone_workers:
        exited, _ = await intents.term(worker, intents.never("drain_max"))
        with intents.context.arranging("IN-RUN-07"):
            demand(exited is not None, "an exit", "it still runs", f"SIGTERM to {worker}")
