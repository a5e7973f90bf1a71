"""The idempotency key (seed 3.3): what goes into it, and under which secret."""

from functools import partial

from holdfast.check.finding import demand, expect
from holdfast.check.keyspace import Keyspace
from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.conformance.intents.client import Intents, Session
from holdfast.conformance.intents.running import ONE_OF_EACH
from holdfast.conformance.intents.secret import added_keys, with_secrets, without_secret
from holdfast.conformance.intents.wire import Answer, accepted, idem_key, refused

# Two secrets, of our own.
ONE = "holdfast-secret-of-a-check-000001"
OTHER = "holdfast-secret-of-a-check-000002"


# --- what goes into the key


@verifies("IN-KEY-01", isolation="quiet", nodes=ONE_OF_EACH)
async def test_the_key_is_the_hmac_of_five_joined_parts(intents: Intents, keys: Keyspace, T: SpecTime) -> None:
    (first, second), ref = intents.profiles[:2], intents.channel()
    recordings = intents.recording(), intents.recording()
    early, later = T.count("vod_first_ms"), T.count("vod_new_ms")
    starts = {
        (ref, first, 0): partial(intents.begin, ref, first),
        (ref, second, 0): partial(intents.begin, ref, second),
        (recordings[0], first, early // 1000): partial(intents.begin_vod, recordings[0], early, first),
        (recordings[0], first, later // 1000): partial(intents.begin_vod, recordings[0], later, first),
        (recordings[1], first, early // 1000): partial(intents.begin_vod, recordings[1], early, first),
    }
    since, store = T.now(), intents.store
    for (target, profile, bucket), start in starts.items():
        session = await start()
        name = store.mapping(idem_key(intents.secret(), target, profile, bucket))
        await _maps(intents, name, session)
    wanted = {store.mapping(idem_key(intents.secret(), *parts)) for parts in starts}
    expect(await added_keys(intents, keys, since), wanted, why="names of the keys that were added")


async def _maps(intents: Intents, name: str, session: Session) -> None:
    """Judges that this key holds the session; a session that has ended already may have lost it."""
    held = await intents.store.value(name)
    if held == "none" and (await intents.poll(session)).terminal:
        return
    expect(held, session.id, why=f"what {name} holds after the start of {session.target}")


@verifies("IN-KEY-02", waits="start_ready")
async def test_a_start_offset_is_not_part_of_the_key_of_a_channel(intents: Intents, T: SpecTime) -> None:
    session = await intents.running()
    for ms in (0, T.count("vod_first_ms"), T.count("vod_new_ms")):
        body = intents.start_body(session.target, session.profile, startMs=ms)
        expect(await intents.post(body), accepted(session.id), why=f"the same start with startMs {ms}")


@verifies("IN-KEY-02", part=2, isolation="quiet", nodes=ONE_OF_EACH, waits="start_ready")
async def test_the_reference_is_trimmed_and_otherwise_taken_as_it_is(
    intents: Intents, keys: Keyspace, T: SpecTime
) -> None:
    ref, since = intents.channel().lower().rstrip(":") + ":", T.now()
    session = await intents.running(ref)
    answer = await intents.start(f"  {ref} ", session.profile)
    expect(answer, accepted(session.id), why="the same start with blanks around the reference")
    wanted = intents.store.mapping(idem_key(intents.secret(), ref, intents.profiles[0], 0))
    expect(await added_keys(intents, keys, since), {wanted}, why="names of the keys that were added")


@verifies("IN-KEY-03")
async def test_offsets_of_one_second_are_one_intent_and_others_are_not(intents: Intents, T: SpecTime) -> None:
    recording = intents.recording()
    seconds = {name: (await intents.begin_vod(recording, T.count(name))).id for name in ("vod_first_ms", "vod_same_ms")}
    seconds["vod_last_ms"] = (await intents.begin_vod(recording, T.count("vod_last_ms"))).id
    for name, id_ in seconds.items():
        expect(id_, seconds["vod_first_ms"], why=f"session at {T.count(name)} ms, against {T.count('vod_first_ms')}")
    others = {"vod_first_ms": seconds["vod_first_ms"]}
    for name in ("vod_before_ms", "vod_next_ms", "vod_new_ms"):
        others[name] = (await intents.begin_vod(recording, T.count(name))).id
    said = ", ".join(f"{T.count(name)} ms: {id_}" for name, id_ in others.items())
    demand(len(set(others.values())) == len(others), "four sessions", said, "offsets in four different seconds")


@verifies("IN-KEY-03")
async def test_two_recordings_never_share_a_session(intents: Intents, T: SpecTime) -> None:
    ref, ms = intents.channel(), T.count("vod_first_ms")
    one, other = [await _beside_a_channel(intents, recording, ms, ref) for recording in _two(intents)]
    demand(one.session_id != other.session_id, "two sessions", one.session_id, "two recordings of one channel")


def _two(intents: Intents) -> tuple[str, str]:
    return intents.recording(), intents.recording()


async def _beside_a_channel(intents: Intents, recording: str, ms: int, ref: str) -> Answer:
    """Starts a recording with a reference beside it, or without one where the schema allows none."""
    answer = await intents.post(intents.vod_body(recording, ms, serviceRef=ref))
    expect(answer, accepted(), refused(400), why="the start of a recording with a serviceRef beside it")
    if answer.status == 400:
        answer = (await intents.begin_vod(recording, ms)).answer
    return answer


@verifies("IN-KEY-03", part=2, isolation="quiet", nodes=ONE_OF_EACH)
async def test_the_bucket_of_a_recording_is_its_whole_seconds(intents: Intents, keys: Keyspace, T: SpecTime) -> None:
    recording, since, wanted = intents.recording(), T.now(), set[str]()
    for name in ("vod_same_ms", "vod_before_ms"):
        await intents.begin_vod(recording, T.count(name))
        key = idem_key(intents.secret(), recording, intents.profiles[0], T.count(name) // 1000)
        wanted.add(intents.store.mapping(key))
    expect(await added_keys(intents, keys, since), wanted, why="names of the keys that were added")


# --- under which secret


async def _found(intents: Intents, session: Session, why: str) -> None:
    answer = await intents.start(session.target, session.profile)
    expect(answer, accepted(session.id), why=f"the same start {why}")


async def _not_found(intents: Intents, session: Session, why: str) -> None:
    answer = await intents.start(session.target, session.profile)
    expect(answer, accepted(), why=f"the same start {why}")
    demand(answer.session_id != session.id, f"another session than {session.id}", answer.describe(), why)


@verifies("IN-KEY-04", isolation="disruptive", nodes=ONE_OF_EACH, waits="2*start_ready + 6*api_ready")
async def test_keys_are_made_with_the_current_secret_of_the_environment(intents: Intents) -> None:
    await with_secrets(intents, ONE)
    session = await intents.running()
    await with_secrets(intents, ONE)
    await _found(intents, session, "after a restart with the same secret")
    await with_secrets(intents, OTHER)
    await _not_found(intents, session, "after a change of the secret without a previous one")

    await with_secrets(intents, OTHER, previous=ONE)
    session = await intents.running()
    await with_secrets(intents, OTHER)
    await _found(intents, session, "with the secret that was the current one")
    await with_secrets(intents, ONE)
    await _not_found(intents, session, "with the secret that was the previous one")


@verifies("IN-KEY-04", part=2, isolation="disruptive", nodes=ONE_OF_EACH, waits="2*api_ready")
async def test_a_new_key_is_written_under_the_current_secret_only(
    intents: Intents, keys: Keyspace, T: SpecTime
) -> None:
    for previous, current in (("", ONE), (ONE, OTHER)):
        await with_secrets(intents, current, previous)
        since = T.now()
        session = await intents.begin()
        wanted = intents.store.mapping(idem_key(current, session.target, intents.profiles[0], 0))
        why = f"names of the keys that were added, {'with' if previous else 'without'} a previous secret"
        expect(await added_keys(intents, keys, since), {wanted}, why=why)


@verifies("IN-KEY-05", isolation="disruptive", nodes=ONE_OF_EACH, waits="4*api_ready + 2*start_ready")
async def test_without_a_secret_each_process_has_one_of_its_own(intents: Intents, T: SpecTime) -> None:
    for how in ("unset", "empty"):
        asked = T.now()
        await without_secret(intents, how)
        T.at_most("api_ready", since=asked, seen=T.now(), what=f"an API that is ready with the secret {how}")
        session = await intents.begin()
        for _ in range(2):
            await _found(intents, session, f"in the same process, with the secret {how}")
        await without_secret(intents, how)
        await _not_found(intents, session, f"after a restart, with the secret {how}")


@verifies("IN-KEY-05", part=2, isolation="disruptive", nodes=ONE_OF_EACH, waits="2*api_ready")
async def test_a_generated_secret_is_neither_empty_nor_the_one_before(
    intents: Intents, keys: Keyspace, T: SpecTime
) -> None:
    ref, profile, made = intents.channel(), intents.profiles[0], list[str]()
    for _ in range(2):
        await without_secret(intents, "unset")
        since = T.now()
        await intents.begin(ref, profile)
        made += await added_keys(intents, keys, since)
    demand(len(set(made)) == 2, "two different keys", ", ".join(made) or "none", "one start in each of two processes")
    empty = intents.store.mapping(idem_key("", ref, profile, 0))
    demand(empty not in made, "no key under the empty secret", ", ".join(made), "no secret is configured")


@verifies("IN-KEY-06", isolation="disruptive", nodes=ONE_OF_EACH, busy=True, waits="2*api_ready + start_ready")
async def test_sessions_of_the_previous_secret_are_found_and_herds_share_one(intents: Intents, T: SpecTime) -> None:
    await with_secrets(intents, ONE)
    session = await intents.running()
    await with_secrets(intents, OTHER, previous=ONE)
    profile, fresh = intents.profiles[0], intents.channel()
    herd = [partial(intents.start, session.target, profile)] * T.count("rotation_herd")
    for answer in await intents.burst(herd):
        expect(answer, accepted(session.id), why="a herd on the channel of a session of the previous secret")
    answers = await intents.burst([partial(intents.start, fresh, profile)] * len(herd))
    for answer in answers:
        expect(answer, accepted(answers[0].session_id), why="a herd on a fresh channel")


@verifies("IN-KEY-06", part=2, isolation="disruptive", nodes=ONE_OF_EACH, waits="2*api_ready + 2*start_ready")
async def test_a_hit_under_the_current_secret_wins(intents: Intents) -> None:
    await with_secrets(intents, ONE)
    one, other = await intents.running(), await intents.running()
    await with_secrets(intents, OTHER, previous=ONE)
    name = intents.store.mapping(idem_key(OTHER, one.target, intents.profiles[0], 0))
    await intents.store.ask("SET", name, other.id)
    answer = await intents.start(one.target, one.profile)
    expect(answer, accepted(other.id), why="a start with a live session under each of the two secrets")
