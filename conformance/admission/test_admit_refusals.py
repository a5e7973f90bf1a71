"""Who is refused, with which code, and in which order (seed §11; upstream contract and validation rules)."""

import dataclasses
import uuid
from collections.abc import AsyncIterator, Iterator
from typing import Any

from holdfast.check.finding import demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.conformance.admission.client import Admission, Instance
from holdfast.conformance.admission.identities import Character
from holdfast.conformance.admission.judging import none_of
from holdfast.conformance.admission.wire import REASONS, Answer, client_error, place, queued, refused, success
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
async def test_every_cause_of_refusal_has_a_code_of_its_own(admission: Admission) -> None:
    """Who is let in although there is a cause to refuse has got no code; that is for the row that owns the cause."""
    codes: dict[str, str] = {}
    let_in: list[tuple[str, str, Answer]] = []
    async for cause, owner, answer in _refusals(admission):
        if answer.outcome in ("success", "queued"):
            let_in.append((cause, owner, answer))
            continue
        expect(answer.outcome, "failed", why=f"{cause}: {answer.describe()}")
        demand(answer.reason in REASONS, "a code of the agreed list", answer.reason or "no reason", cause)
        codes[cause] = str(answer.reason)

    shared = {code: [cause for cause in codes if codes[cause] == code] for code in codes.values()}
    twice = [f"{code} for {' and '.join(causes)}" for code, causes in shared.items() if len(causes) > 1]
    none_of(twice, "code for two causes")
    for cause, owner, answer in let_in:
        with admission.arranging(owner):
            expect(answer, refused(), why=cause)


@verifies("AD-ADMIT-05")
async def test_maintenance_and_shutdown_have_their_own_code(admission: Admission) -> None:
    arena, character = await admission.instance(), await admission.character()
    for state in ("maintenance", "shutting_down"):
        await arena.put(capacity=10, state=state)
        expect(await arena.connect(character), refused("MAINTENANCE"), why=f"the instance is {state}")
    await arena.put(capacity=10, state="accepting")
    expect(await arena.connect(character), success(), why="control: the instance accepts again")


async def _refusals(admission: Admission) -> AsyncIterator[tuple[str, str, Answer]]:
    """Yields each cause, the row that owns it, and the answer; a user of its own for each, so that nobody is locked."""
    arena, closed, draining = [await admission.instance() for _ in range(3)]
    inside, outdated, lost, other, unlucky, resuming, replacing, late = await admission.characters(8)
    yield "no credentials", "AD-ADMIT-06", await admission.call(arena.request(other.id), None)
    yield "no character", "AD-ADMIT-06", await admission.call(arena.request(""), admission.user())
    yield "a wrong build", "AD-VER-01", await arena.fail(outdated)
    unknown = Instance(admission, "i-nobody-registered")
    yield "an unknown instance", "AD-ADMIT-06", await unknown.connect(lost)
    await arena.admit(inside)
    yield "a running session", "AD-ADMIT-09", await arena.connect(inside)
    yield "an unknown reconnection token", "AD-RECON-06", await arena.connect(resuming, token=UNKNOWN_TOKEN)
    await arena.admit(replacing)
    yield "an unknown replacement token", "AD-REPL-04", await arena.connect(replacing, replace=UNKNOWN_TOKEN)
    await arena.lock(unlucky)
    yield "too many failures", "AD-RATE-01", await arena.connect(unlucky)
    if admission.features.has("accounts"):
        foreign, suspended = await admission.characters(2)
        yield "a character of another user", "AD-SEC-01", await arena.connect(foreign, as_user=admission.stranger())
        await admission.suspend(suspended)
        yield "a suspended character", "AD-ADMIT-07", await arena.connect(suspended)
    await closed.put(capacity=10, state="maintenance")
    yield "maintenance", "AD-ADMIT-05", await closed.connect(other)
    await draining.drain()
    yield "drain", "AD-DRAIN-01", await draining.connect(late)


def _altered(bearer: str) -> Iterator[str]:
    """Yields a good bearer with its end, its begin and its middle altered: none of them was ever issued."""
    yield f"{bearer[:-8]}{'0' * 8}"
    for at in (0, len(bearer) // 2):
        other = "x" if bearer[at] != "x" else "y"
        yield f"{bearer[:at]}{other}{bearer[at + 1 :]}"


@verifies("AD-ADMIT-06")
async def test_without_valid_credentials_there_is_no_session(admission: Admission) -> None:
    arena, character = await admission.instance(), await admission.character()
    request = arena.request(character.id)
    forged = (f"Bearer {each}" for each in _altered(character.user.bearer))
    for said in (None, "InvalidFormat", "Bearer nobody", *forged):
        header = {"Authorization": said} if said else {}
        with admission.context.collect():
            _nothing_given(await admission.call(request, None, headers=header), "NOT_AUTHENTICATED")

    await _let_in(arena, character, "control: the same attempt with its owner's credentials")


@verifies("AD-ADMIT-06")
async def test_without_a_character_there_is_no_session(admission: Admission) -> None:
    arena, character = await admission.instance(), await admission.character()
    for request in _without_character(admission, arena):
        with admission.context.collect():
            _nothing_given(await admission.call(request, admission.user()), "NO_ACTIVE_CHARACTER")

    await _let_in(arena, character, "control: the same attempt with a character")


@verifies("AD-ADMIT-06")
async def test_bad_and_unknown_instances_admit_nobody(admission: Admission) -> None:
    """No user fails more often than once, so that no lock hides an answer."""
    character, again, other = await admission.characters(3)
    unknown = Instance(admission, f"i-unknown-{uuid.uuid4()}")
    bad = await Instance(admission, BAD_ID).connect(other)
    expect(bad, refused("INVALID_INSTANCE"), client_error())
    none_of(bad.given("sessionId", "position"), "session or place", "a refusal hands out nothing")
    for each in (character, again):
        _nothing_given(await unknown.connect(each), "INVALID_INSTANCE")

    arena = await admission.instance()
    await _let_in(arena, character, "control: the same attempt on a registered instance")


@verifies("AD-ADMIT-06", part=2, isolation="quiet")
async def test_requests_without_valid_subject_leave_no_key(admission: Admission) -> None:
    arena, character, keys = await admission.instance(), await admission.character(), admission.keys()
    unknown = Instance(admission, f"i-unknown-{character.id}")
    before = await keys.snapshot("session:*", "queue:*")
    await admission.call(arena.request(character.id), None)
    await admission.call(arena.request(character.id), None, headers={"Authorization": "Bearer nobody"})
    for request in _without_character(admission, arena):
        await admission.call(request, admission.user())
    for nowhere in (Instance(admission, BAD_ID), unknown):
        await nowhere.connect(character)

    after = await keys.snapshot("session:*", "queue:*")
    moved = sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
    none_of(moved, "record of a session or a place changed", "by refusals")
    named = [key async for key in keys.redis.scan_iter(count=1000) if BAD_ID in key or unknown.id in key]
    none_of(named, "key made of an id that is no instance's")
    await arena.admit(character)
    with admission.arranging("AD-STATE-01"):
        seen = await keys.snapshot("session:*", "queue:*") != after
        demand(seen, "records of sessions in Redis", "none, not even of an admission", "control")


async def _let_in(arena: Instance, character: Character, why: str) -> None:
    with arena.admission.arranging("AD-ADMIT-01"):
        expect(await arena.connect(character), success(), why=why)


def _without_character(admission: Admission, arena: Instance) -> list[Request]:
    """Absent, null and empty."""
    absent, empty = arena.request(None), arena.request("")
    null = dataclasses.replace(absent, body={**absent.body, admission.codec.character_field: None})
    return [absent, null, empty]


def _nothing_given(answer: Answer, reason: str) -> None:
    expect(answer, refused(reason))
    none_of(answer.given("sessionId", "position"), "session or place", "a refusal hands out nothing")


@verifies("AD-ADMIT-07")
async def test_a_suspended_character_is_refused_with_free_slots_and_without(admission: Admission) -> None:
    suspended = await admission.character()
    await admission.suspend(suspended, **NOTE)
    free, full = await admission.instance(), await _full(admission)
    for arena, control, owner in ((free, success(), "AD-ADMIT-01"), (full, queued(position=0), "AD-POLL-01")):
        answer = await arena.connect(suspended)
        expect(answer, refused("CHARACTER_SUSPENDED"))
        shown = [word for word in (*NOTE.values(), *NOTE.keys() - {"note"}) if word in answer.text]
        none_of(shown, "word of the moderation record", f"the refusal: {answer.text}")
        expect(await arena.status(suspended), status(404))
        with admission.arranging(owner):
            expect(await arena.connect(await admission.character()), control, why="control: another character")

    await admission.suspend(suspended, on=False)
    arena = await admission.instance()
    expect(await arena.connect(suspended), success(), why="control: the suspension was the only reason")


@verifies("AD-ADMIT-07")
async def test_a_wrong_build_is_not_queued(admission: Admission) -> None:
    arena, outdated = await _full(admission), await admission.character()
    (waiting,) = await arena.line_up(1)
    expect(await arena.fail(outdated), refused("VERSION_MISMATCH"))

    expect(await arena.status(waiting), place(0, 1), why="the queue after the refusal")
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

    expect(await arena.connect(foreign, as_user=admission.stranger()), refused("CHARACTER_NOT_OWNED"))
    expect(await arena.fail(suspended), refused("CHARACTER_SUSPENDED"))


@verifies("AD-ADMIT-08")
async def test_version_comes_before_an_existing_session(admission: Admission) -> None:
    arena, character = await admission.instance(), await admission.character()
    await arena.admit(character)
    answer = await arena.fail(character)

    expect(answer, refused("VERSION_MISMATCH"))
    none_of(answer.given("replacementToken"), "replacement token for an outdated client")
    with admission.arranging("AD-ADMIT-09"):
        expect(await arena.connect(character), refused("ALREADY_IN_SESSION"), why="control: with the current build")


@verifies("AD-ADMIT-08")
async def test_an_existing_session_comes_before_drain(admission: Admission) -> None:
    arena, (inside, newcomer) = await admission.instance(), await admission.characters(2)
    await arena.admit(inside)
    await arena.drain()

    expect(await arena.connect(inside), refused("ALREADY_IN_SESSION"))
    with admission.arranging("AD-DRAIN-01"):
        expect(await arena.connect(newcomer), refused("DRAIN_MODE"), why="control: the instance does drain")


@verifies("AD-ADMIT-08", busy=True, waits="5*prompt + queue_cap / 100")
async def test_drain_comes_before_a_full_queue(admission: Admission, T: SpecTime) -> None:
    arena, newcomer = await _full(admission), await admission.character()
    await arena.crowd(T.count("queue_cap"))
    with admission.arranging("AD-QUEUE-07"):
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

    with admission.arranging("AD-OBS-09"):
        await T.until(counted, give_up=T.prompt_never, what="the wrong build in version_mismatch_total")
    expect(await _mismatches(admission), before + 1, why="version_mismatch_total counts the other wrong build alone")


async def _mismatches(admission: Admission) -> float:
    return (await admission.metrics()).total("version_mismatch_total")
