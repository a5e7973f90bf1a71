"""One attempt against free and taken slots (seed §11 Atomic Admission): who gets in, and what is counted."""

from collections.abc import Awaitable, Callable

from holdfast.check.finding import expect
from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.conformance.admission.client import Admission, Instance
from holdfast.conformance.admission.wire import UUID, Answer, queued, refused, success

PLACES = 3


@verifies("AD-ADMIT-01")
async def test_a_valid_attempt_with_a_free_slot_gets_a_session_and_a_token(admission: Admission) -> None:
    arena, character = await admission.instance(), await admission.character()
    answer = await arena.connect(character)

    expect(answer, success())
    assert UUID.fullmatch(answer.session_id), f"sessionId {answer.session_id!r} is no UUID"
    assert UUID.fullmatch(answer.token), f"reconnectionToken {answer.token!r} is no UUID"
    expect({"reason", "position"} & answer.fields.keys(), set(), why="fields that a success does not have")


@verifies("AD-ADMIT-01")
async def test_two_characters_of_one_user_each_get_a_session_of_their_own(admission: Admission) -> None:
    arena = await admission.instance()
    pair = await admission.characters(2, admission.user())
    answers = await admission.parallel([lambda c=c: arena.connect(c) for c in pair])  # type: ignore[misc]  # lambda default

    for answer in answers:
        expect(answer, success())
    for character, answer in zip(pair, answers, strict=True):
        expect(await arena.connect(character), refused("ALREADY_IN_SESSION"))
        socket = await arena.attach(answer.session_id, character)
        expect((await socket.first_frame()).get("characterId"), character.id, why="the first frame after attach")


@verifies("AD-ADMIT-01", part=2)
async def test_the_record_names_character_user_and_instance_of_its_own_request(admission: Admission) -> None:
    arena, elsewhere, keys = await admission.instance(), await admission.instance(), admission.keys()
    pair = await admission.characters(2, admission.user())
    for place, character in zip((arena, elsewhere), pair, strict=True):
        answer = await place.admit(character)
        record = await keys.record(keys.name("session_data", answer.session_id))
        seen = {name: record.get(name) for name in ("characterId", "userId", "instanceId")}
        expect(seen, {"characterId": character.id, "userId": character.user.id, "instanceId": place.id})


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
        expect(await refuse(), refused())

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
        expect(await refuse(), refused())
        expect(await keys.ask("SCARD", slots), before, why="sessions on the instance after a refusal")

    character = await admission.character()
    answer = await arena.admit(character)
    expect(await keys.ask("SCARD", slots), before + 1, why="sessions on the instance after a success")
    record = await keys.record(keys.name("session_data", answer.session_id))
    expect(record.get("characterId"), character.id, why="the session's record")


@verifies("AD-ADMIT-02", part=3, isolation="quiet", waits="stale_reclaim + slack")
async def test_the_gauge_counts_sessions_and_not_refusals(admission: Admission, T: SpecTime) -> None:
    arena, others = await admission.instance(), await admission.sessions_of_others()
    await arena.fill(1)
    await _gauge_shows(admission, T, others + 1)
    for refuse in await _three_refusals(admission, arena):
        expect(await refuse(), refused())
    await _gauge_shows(admission, T, others + 1)
    await arena.fill(1)
    await _gauge_shows(admission, T, others + 2)


async def _gauge_shows(admission: Admission, T: SpecTime, sessions: float) -> None:
    """Waits until the gauge has this value. It may lag behind, but it may not exceed this value at any time."""

    async def look() -> bool:
        value = (await admission.metrics()).total("session_active_current")
        assert value <= sessions, f"session_active_current is {value:g} with {sessions:g} sessions"
        return value == sessions

    await T.until(look, give_up=T.prompt_never, what=f"session_active_current at {sessions:g}")


async def _three_refusals(admission: Admission, arena: Instance) -> list[Callable[[], Awaitable[Answer]]]:
    """Returns attempts with a wrong build, a suspended character and a character of another user."""
    outdated, suspended, foreign = await admission.characters(3)
    await admission.suspend(suspended)
    thief = admission.user()
    return [
        lambda: arena.fail(outdated),
        lambda: arena.connect(suspended),
        lambda: arena.connect(foreign, as_user=thief),
    ]
