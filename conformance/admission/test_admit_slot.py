"""One attempt against free and taken slots (seed §11 Atomic Admission): who gets in, and what is counted."""

from collections.abc import Awaitable, Callable
from functools import partial

from holdfast.check.finding import demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.conformance.admission.client import Admission, Instance
from holdfast.conformance.admission.judging import none_of
from holdfast.conformance.admission.values import UUID, same_id
from holdfast.conformance.admission.wire import Answer, queued, refused, success

PLACES = 3


@verifies("AD-ADMIT-01")
async def test_a_valid_attempt_with_a_free_slot_gets_a_session_and_a_token(admission: Admission) -> None:
    arena, character = await admission.instance(), await admission.character()
    answer = await arena.connect(character)

    expect(answer, success())
    with admission.context.collect():
        demand(UUID.fullmatch(answer.session_id), "sessionId: a UUID", answer.session_id or "none")
    with admission.context.collect():
        demand(UUID.fullmatch(answer.token), "reconnectionToken: a UUID", answer.token or "none")
    none_of(answer.given("reason", "position"), "reason or position", "fields that a success does not have")


@verifies("AD-ADMIT-01")
async def test_two_characters_of_one_user_each_get_a_session_of_their_own(admission: Admission) -> None:
    arena = await admission.instance()
    pair = await admission.characters(2, admission.user())
    answers = await admission.burst([partial(arena.connect, each) for each in pair])

    for answer in answers:
        expect(answer, success())
    for character, answer in zip(pair, answers, strict=True):
        expect(await arena.connect(character), refused("ALREADY_IN_SESSION"))
        socket = await arena.attach(answer.session_id, character)
        named = (await socket.first_frame()).get("characterId")
        demand(same_id(named, character.id), f"characterId {character.id}", str(named), "the first frame after attach")


@verifies("AD-ADMIT-01", part=2)
async def test_the_record_names_character_user_and_instance_of_its_own_request(admission: Admission) -> None:
    arena, elsewhere, keys = await admission.instance(), await admission.instance(), admission.keys()
    pair = await admission.characters(2, admission.user())
    for place, character in zip((arena, elsewhere), pair, strict=True):
        answer = await place.admit(character)
        record = await keys.record(keys.name("session_data", answer.session_id))
        wanted = {"characterId": character.id, "userId": character.user.id, "instanceId": place.id}
        for name, value in wanted.items():
            demand(same_id(record.get(name), value), f"{name} {value}", str(record.get(name)), "the session's record")


@verifies("AD-ADMIT-02")
async def test_a_full_instance_queues_the_next(admission: Admission) -> None:
    arena, newcomer = await admission.instance(capacity=PLACES), await admission.character()
    for _ in range(PLACES):
        await arena.hold()

    expect(await arena.connect(newcomer), queued(position=0))


@verifies("AD-ADMIT-02")
async def test_refusals_take_no_slot(admission: Admission) -> None:
    arena = await admission.instance(capacity=PLACES)
    for refuse in await _three_refusals(admission, arena):
        await refuse()

    people = await admission.characters(PLACES + 1)
    for character in people[:PLACES]:
        expect(await arena.connect(character), success(), why="the refusals before left all slots free")
    expect(await arena.connect(people[PLACES]), queued(position=0))


@verifies("AD-ADMIT-02", part=2)
async def test_an_admission_raises_the_count_by_one_and_a_refusal_by_none(admission: Admission) -> None:
    arena, keys = await admission.instance(), admission.keys()
    slots = keys.name("session_instance", arena.id)
    await arena.fill(1)
    before = await keys.ask("SCARD", slots)
    for refuse in await _three_refusals(admission, arena):
        await refuse()
        expect(await keys.ask("SCARD", slots), before, why="sessions on the instance after a refusal")

    character = await admission.character()
    answer = await arena.admit(character)
    expect(await keys.ask("SCARD", slots), before + 1, why="sessions on the instance after a success")
    record = await keys.record(keys.name("session_data", answer.session_id))
    named = record.get("characterId")
    demand(same_id(named, character.id), f"characterId {character.id}", str(named), "the session's record")


@verifies("AD-ADMIT-02", part=3, isolation="quiet", waits="stale_reclaim + slack")
async def test_the_gauge_counts_sessions_and_not_refusals(admission: Admission, T: SpecTime) -> None:
    arena, others = await admission.instance(), await admission.sessions_of_others()
    await arena.fill(1)
    await _gauge_shows(admission, T, others + 1)
    for refuse in await _three_refusals(admission, arena):
        await refuse()
    await _gauge_shows(admission, T, others + 1)
    await arena.fill(1)
    await _gauge_shows(admission, T, others + 2)


async def _gauge_shows(admission: Admission, T: SpecTime, sessions: float) -> None:
    """Waits until the gauge has this value. It may lag behind, but it may not exceed this value at any time."""

    async def look() -> bool:
        value = (await admission.metrics()).total("session_active_current")
        demand(value <= sessions, f"session_active_current at most {sessions:g}", f"{value:g}", "so many sessions")
        return value == sessions

    await T.until(look, give_up=T.prompt_never, what=f"session_active_current at {sessions:g}")


async def _three_refusals(admission: Admission, arena: Instance) -> list[Callable[[], Awaitable[None]]]:
    """Returns attempts with a wrong build, a suspended character and a character of another user, each refused."""
    outdated, suspended, foreign = await admission.characters(3)
    await admission.suspend(suspended)
    thief = admission.stranger()

    async def refuse(owner: str, attempt: Callable[[], Awaitable[Answer]]) -> None:
        answer = await attempt()
        with admission.arranging(owner):
            expect(answer, refused())

    return [
        partial(refuse, "AD-VER-01", lambda: arena.fail(outdated)),
        partial(refuse, "AD-ADMIT-07", lambda: arena.connect(suspended)),
        partial(refuse, "AD-SEC-01", lambda: arena.connect(foreign, as_user=thief)),
    ]
