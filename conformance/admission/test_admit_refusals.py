"""Who is refused, with which code, and in which order (seed §11; upstream contract and validation rules)."""

import dataclasses
from collections.abc import AsyncIterator
from typing import Any

from holdfast.check.finding import expect
from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.conformance.admission.client import Admission, Instance
from holdfast.conformance.admission.wire import REASONS, Answer, queued, refused, success
from holdfast.conformance.shared.wire import Request, status

UNKNOWN_TOKEN = "00000000-0000-4000-8000-000000000000"  # noqa: S105 - a token that nobody was given
BAD_ID = "bad@id*"
NOTE: dict[str, Any] = {
    "note": "griefing-in-the-harbour",
    "internalReason": "griefing-case-7711",
    "moderatorId": "moderator-4242",
    "reportDetails": "report-of-the-harbour",
}


@verifies("AD-ADMIT-05")
async def test_every_cause_of_refusal_has_a_code_of_its_own(admission: Admission, T: SpecTime) -> None:
    codes: dict[str, str] = {}
    async for cause, answer in _refusals(admission, T):
        expect(answer.outcome, "failed", why=cause)
        assert answer.reason in REASONS, f"{cause}: the reason {answer.reason!r} is no code of the agreed list"
        codes[cause] = str(answer.reason)

    shared = {code: [cause for cause in codes if codes[cause] == code] for code in codes.values()}
    twice = {code: causes for code, causes in shared.items() if len(causes) > 1}
    assert not twice, f"different causes, one code: {twice}"


@verifies("AD-ADMIT-05")
async def test_maintenance_and_shutdown_have_their_own_code(admission: Admission) -> None:
    arena, character = await admission.instance(), await admission.character()
    for state in ("maintenance", "shutting_down"):
        await arena.put(capacity=10, state=state)
        expect(await arena.connect(character), refused("MAINTENANCE"), why=f"the instance is {state}")
    await arena.put(capacity=10, state="accepting")
    expect(await arena.connect(character), success(), why="control: the instance accepts again")


async def _refusals(admission: Admission, T: SpecTime) -> AsyncIterator[tuple[str, Answer]]:
    arena, closed, draining = [await admission.instance() for _ in range(3)]
    inside, suspended, outdated, foreign, other, unlucky, resuming, replacing = await admission.characters(8)
    yield "no credentials", await admission.call(arena.request(other.id), None)
    yield "no character", await admission.call(arena.request(""), other.user)
    yield "a character of another user", await arena.connect(foreign, as_user=admission.user())
    await admission.suspend(suspended)
    yield "a suspended character", await arena.connect(suspended)
    yield "a wrong build", await arena.fail(outdated)
    yield "an unknown instance", await Instance(admission, "i-nobody-registered").connect(outdated)
    await closed.put(capacity=10, state="maintenance")
    yield "maintenance", await closed.connect(other)
    await arena.admit(inside)
    yield "a running session", await arena.connect(inside)
    yield "an unknown reconnection token", await arena.connect(resuming, token=UNKNOWN_TOKEN)
    await arena.admit(replacing)
    yield "an unknown replacement token", await arena.connect(replacing, replace=UNKNOWN_TOKEN)
    await draining.drain()
    yield "drain", await draining.connect(other)
    for _ in range(T.count("rate_failures")):
        await arena.fail(unlucky)
    yield "too many failures", await arena.connect(unlucky)


@verifies("AD-ADMIT-06")
async def test_without_valid_credentials_there_is_no_session(admission: Admission) -> None:
    arena, character = await admission.instance(), await admission.character()
    request = arena.request(character.id)
    forged = f"{character.user.bearer[:-8]}{'0' * 8}"
    for header in (
        {},
        {"Authorization": "InvalidFormat"},
        {"Authorization": "Bearer nobody"},
        {"Authorization": f"Bearer {forged}"},
    ):
        _nothing_given(await admission.call(request, None, headers=header), "NOT_AUTHENTICATED")

    expect(await arena.connect(character), success(), why="control: the same attempt with its owner's credentials")


@verifies("AD-ADMIT-06")
async def test_without_a_character_there_is_no_session(admission: Admission) -> None:
    arena, character = await admission.instance(), await admission.character()
    for request in _without_character(arena):
        _nothing_given(await admission.call(request, admission.user()), "NO_ACTIVE_CHARACTER")

    expect(await arena.connect(character), success(), why="control: the same attempt with a character")


@verifies("AD-ADMIT-06")
async def test_bad_and_unknown_instances_admit_nobody(admission: Admission) -> None:
    character = await admission.character()
    unknown = Instance(admission, f"i-unknown-{character.id}")
    bad = await Instance(admission, BAD_ID).connect(character)
    expect(bad, refused("INVALID_INSTANCE"), status(400))
    expect({"sessionId", "position"} & bad.fields.keys(), set())
    for _ in range(2):
        _nothing_given(await unknown.connect(character), "INVALID_INSTANCE")

    arena = await admission.instance()
    expect(await arena.connect(character), success(), why="control: the same attempt on a registered instance")


@verifies("AD-ADMIT-06", part=2, isolation="quiet")
async def test_requests_without_valid_subject_leave_no_key(admission: Admission) -> None:
    arena, character, keys = await admission.instance(), await admission.character(), admission.keys()
    unknown = Instance(admission, f"i-unknown-{character.id}")
    before = await keys.snapshot("session:*", "queue:*")
    await admission.call(arena.request(character.id), None)
    await admission.call(arena.request(character.id), None, headers={"Authorization": "Bearer nobody"})
    for request in _without_character(arena):
        await admission.call(request, admission.user())
    for nowhere in (Instance(admission, BAD_ID), unknown):
        await nowhere.connect(character)

    expect(await keys.snapshot("session:*", "queue:*"), before, why="session:* and queue:* around the refusals")
    named = [key async for key in keys.redis.scan_iter(count=1000) if BAD_ID in key or unknown.id in key]
    expect(named, [], why="keys made of an id that is no instance's")
    await arena.admit(character)
    assert await keys.snapshot("session:*") != before, "control: an admission leaves no key either, so nothing was seen"


def _without_character(arena: Instance) -> list[Request]:
    """Absent, null and empty."""
    absent, empty = arena.request(None), arena.request("")
    return [absent, dataclasses.replace(absent, body={**absent.body, "characterId": None}), empty]


def _nothing_given(answer: Answer, reason: str) -> None:
    expect(answer, refused(reason))
    expect({"sessionId", "position"} & answer.fields.keys(), set(), why="a refusal hands out nothing")


@verifies("AD-ADMIT-07")
async def test_a_suspended_character_is_refused_with_free_slots_and_without(admission: Admission) -> None:
    suspended = await admission.character()
    await admission.suspend(suspended, **NOTE)
    for arena, control in ((await admission.instance(), success()), (await _full(admission), queued(position=0))):
        answer = await arena.connect(suspended)
        expect(answer, refused("CHARACTER_SUSPENDED"))
        shown = [word for word in (*NOTE.values(), *NOTE.keys() - {"note"}) if word in answer.text]
        assert not shown, f"the refusal shows {shown} of the moderation record"
        expect(await arena.status(suspended), status(404))
        expect(await arena.connect(await admission.character()), control, why="control: another character")

    await admission.suspend(suspended, on=False)
    arena = await admission.instance()
    expect(await arena.connect(suspended), success(), why="control: the suspension was the only reason")


@verifies("AD-ADMIT-07")
async def test_a_wrong_build_is_not_queued(admission: Admission) -> None:
    arena, outdated = await _full(admission), await admission.character()
    (waiting,) = await arena.line_up(1)
    expect(await arena.fail(outdated), refused("VERSION_MISMATCH"))

    expect((await arena.status(waiting)).depth, 1, why="depth of the queue after the refusal")
    expect(await arena.status(outdated), status(404))
    expect(await arena.connect(outdated), queued(position=1), why="control: the same attempt with the current build")


async def _full(admission: Admission) -> Instance:
    arena = await admission.instance(capacity=1)
    await arena.hold()
    return arena


@verifies("AD-ADMIT-08")
async def test_ownership_comes_before_suspension_and_suspension_before_version(admission: Admission) -> None:
    arena, foreign, suspended = await admission.instance(), *await admission.characters(2)
    for character in (foreign, suspended):
        await admission.suspend(character)

    expect(await arena.connect(foreign, as_user=admission.user()), refused("CHARACTER_NOT_OWNED"))
    expect(await arena.fail(suspended), refused("CHARACTER_SUSPENDED"))


@verifies("AD-ADMIT-08")
async def test_version_comes_before_an_existing_session(admission: Admission) -> None:
    arena, character = await admission.instance(), await admission.character()
    await arena.admit(character)
    answer = await arena.fail(character)

    expect(answer, refused("VERSION_MISMATCH"))
    expect(answer.offer, "", why="an outdated client gets no replacement token")
    expect(await arena.connect(character), refused("ALREADY_IN_SESSION"), why="control: with the current build")


@verifies("AD-ADMIT-08")
async def test_an_existing_session_comes_before_drain(admission: Admission) -> None:
    arena, (inside, newcomer) = await admission.instance(), await admission.characters(2)
    await arena.admit(inside)
    await arena.drain()

    expect(await arena.connect(inside), refused("ALREADY_IN_SESSION"))
    expect(await arena.connect(newcomer), refused("DRAIN_MODE"), why="control: the instance does drain")


@verifies("AD-ADMIT-08", busy=True, waits="5*prompt + queue_cap / 100")
async def test_drain_comes_before_a_full_queue(admission: Admission, T: SpecTime) -> None:
    arena, newcomer = await _full(admission), await admission.character()
    await arena.crowd(T.count("queue_cap"))
    expect(await arena.connect(newcomer), refused("QUEUE_FULL"), why="control: the queue is at its cap")
    await arena.drain()

    expect(await arena.connect(newcomer), refused("DRAIN_MODE"))


@verifies("AD-ADMIT-08", part=2, isolation="quiet")
async def test_a_suspended_character_with_a_wrong_build_is_no_version_mismatch(
    admission: Admission, T: SpecTime
) -> None:
    arena, suspended, outdated = await admission.instance(), *await admission.characters(2)
    await admission.suspend(suspended)
    before = await _mismatches(admission)
    await arena.fail(suspended)
    expect(await _mismatches(admission), before, why="version_mismatch_total after the suspended character")
    await arena.fail(outdated)

    async def counted() -> bool:
        return await _mismatches(admission) > before

    await T.until(counted, give_up=T.prompt_never, what="the wrong build in version_mismatch_total")
    expect(await _mismatches(admission), before + 1, why="version_mismatch_total counts the other wrong build alone")


async def _mismatches(admission: Admission) -> float:
    return (await admission.metrics()).total("version_mismatch_total")
