"""Events of attempts (seed §4 Observability Taxonomy): nine names, a start and one outcome each, and what they say."""

import json
import uuid
from collections import defaultdict
from functools import partial
from typing import Any

from holdfast.check.finding import Absent, Inconclusive, demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.conformance.admission.client import Admission, Instance, outcomes, tally
from holdfast.conformance.admission.identities import Character, User
from holdfast.conformance.admission.judging import none_of
from holdfast.conformance.admission.limiter import expect_locked
from holdfast.conformance.admission.values import epoch_ms, whole
from holdfast.conformance.admission.wire import Answer, refused
from holdfast.conformance.shared.wire import moment

ATTEMPT = "connection.attempt"
OUTCOMES = frozenset(
    {"connection.queued", "connection.admitted", "connection.failed", "connection.timeout", "connection.throttled"}
)
NAMES = OUTCOMES | {
    ATTEMPT,
    "connection.reconnect_attempt",
    "connection.reconnected",
    "connection.disconnected",
}
MIXED = 1000
MIXED_UNDER_JITTER = 200
STALLED = 8
# Where loggers put the time of a line.
TIME_FIELDS = ("time", "timestamp", "ts", "@timestamp")


@verifies("AD-OBS-01", isolation="disruptive", waits="wait_tolerance + attempt_deadline + promote_within")
async def test_a_full_run_writes_nine_names_and_no_others(admission: Admission, T: SpecTime) -> None:
    arena = await admission.instance(capacity=1)
    await _everything_but_a_timeout(admission, T, arena)
    wanted = set(NAMES)
    if not await _time_out(admission, arena):
        wanted.remove("connection.timeout")

    async def names() -> str:
        return ", ".join(sorted({record["event"] for record in _connection_events(admission)}))

    if not await names():
        raise Absent(["JSON lines with the event's name in a field `event`"], "none in the whole log")
    await admission.settles(names, ", ".join(sorted(wanted)), why="names that start with 'connection.'")
    for record in _connection_events(admission):
        timed = any(_is_time(record.get(name)) for name in TIME_FIELDS)
        demand(timed, f"a time in {' or '.join(TIME_FIELDS)}", json.dumps(record), "a line of the log")
        demand(record.get("instanceId"), "instanceId", json.dumps(record), "a line of the log")


def _connection_events(admission: Admission, **wanted: Any) -> list[dict[str, Any]]:
    return [record for record in admission.events(**wanted) if str(record.get("event")).startswith("connection.")]


def _is_time(value: object) -> bool:
    """Whether it is a number since 1970, or ISO 8601 text with whatever fraction and offset."""
    return value is not None and not isinstance(value, bool) and epoch_ms(value) is not None


async def _everything_but_a_timeout(admission: Admission, T: SpecTime, arena: Instance) -> None:
    character, waiting, failing = await admission.characters(3)
    session, gone = await arena.dropped(character)
    await arena.enqueue(waiting)
    lock = await arena.lock(failing)
    with admission.arranging("AD-RATE-01"):
        expect_locked(T, [lock], await arena.connect(failing))
    await arena.resume(character, session, gone=gone)
    freed = moment(await arena.release(session.session_id, character))
    await arena.promoted(waiting, since=freed)


async def _time_out(admission: Admission, arena: Instance) -> bool:
    """Pauses Redis, if Holdfast runs it, during one attempt; returns whether that ended as a timeout."""
    if (store := admission.deployment.store) is None:
        return False
    late = await admission.character()
    await store.pause()
    try:
        answer = await arena.connect(late)
    finally:
        await store.resume()
    return answer.outcome == "timeout"


@verifies("AD-OBS-02", isolation="quiet", busy=True, waits="2*recovery")
async def test_each_of_a_thousand_attempts_logs_a_start_and_one_outcome(admission: Admission) -> None:
    arenas = await _mixed_attempts(admission, MIXED)
    await _each_told_once(admission, arenas, MIXED)


@verifies("AD-OBS-02", part=2, isolation="disruptive", busy=True, waits="attempt_deadline + undo_settle + recovery")
async def test_jitter_and_a_stall_leave_one_outcome_for_each_attempt(admission: Admission, T: SpecTime) -> None:
    link = admission.deployment.link(admission.nodes[0])
    await link.delay(2 * T.redis_hop, jitter=2 * T.redis_hop)
    arenas = await _mixed_attempts(admission, MIXED_UNDER_JITTER)
    await link.heal()

    free, full = await admission.instance(), await admission.instance(capacity=1)
    await full.fill(1)
    people = await admission.characters(STALLED)
    await link.stall("down")
    answers = await admission.parallel([partial((free, full)[n % 2].connect, c) for n, c in enumerate(people)])
    await link.heal()
    await T.sleep(T.undo_settle, "late work of the timed-out attempts to come and go")

    sent = MIXED_UNDER_JITTER + 1 + STALLED
    timeouts = await _each_told_once(admission, [*arenas, free, full], sent)
    seen = outcomes(answers)
    if seen.keys() - {"timeout", "INTERNAL_ERROR"}:
        raise Inconclusive(f"some attempts did not meet the stall: {tally(seen)}")
    expect(timeouts, seen.get("timeout", 0), why="attempts whose one outcome is connection.timeout")


async def _mixed_attempts(admission: Admission, count: int) -> list[Instance]:
    """Makes `count` attempts of all kinds, each by a character of its own; returns the instances they went to."""
    arena, ghost = await admission.instance(capacity=count // 20), Instance(admission, f"i-{uuid.uuid4().hex[:12]}")
    nobody, culprit = User("nobody", "no-such-bearer"), admission.user()
    share, limit = count // 10, admission.T.count("rate_failures")
    known = await admission.characters(2 * share)
    strangers = [Character(str(uuid.uuid4()), admission.user()) for _ in range(count - 3 * share)]
    throttled = await admission.characters(share, culprit)
    for character in throttled[:limit]:
        await arena.fail(character)
    calls = [partial(arena.connect, c) for c in throttled[limit:]]
    calls += [partial(arena.connect, c) for c in known[:share]] + [partial(arena.fail, c) for c in known[share:]]
    calls += [partial(arena.connect, c, as_user=nobody) for c in strangers[: 2 * share]]
    calls += [partial(_malformed, admission, arena, c.user) for c in strangers[2 * share : 4 * share]]
    calls += [partial(ghost.connect, c) for c in strangers[4 * share : 5 * share]]
    calls += [partial(arena.connect, c) for c in strangers[5 * share :]]
    admission.context.random.shuffle(calls)
    answers = await admission.parallel(calls, at_once=16)
    if missing := sum(not answer.answered for answer in answers):
        raise Inconclusive(f"{missing} attempts got no answer")
    return [arena, ghost]


async def _malformed(admission: Admission, arena: Instance, user: User) -> Answer:
    headers = {"Authorization": f"Bearer {user.bearer}", "Content-Type": "application/json"}
    return await admission.raw("POST", f"/instances/{arena.id}/connect", data=b'{"characterId": ', headers=headers)


async def _each_told_once(admission: Admission, arenas: list[Instance], sent: int) -> int:
    """Raises Finding unless each attempt at these instances has one start, then one outcome; returns the timeouts."""
    places = {arena.id for arena in arenas}

    async def recorded() -> str:
        stories = _stories(admission, places)
        starts = sum(story.count(ATTEMPT) for story in stories.values())
        odd = [" then ".join(story) for key, story in stories.items() if not _is_whole(key, story)][:3]
        return _told(starts, odd)

    await admission.settles(recorded, _told(sent, []), why="each attempt has a start and one outcome")
    return sum(story.count("connection.timeout") for story in _stories(admission, places).values())


def _told(starts: int, odd: list[str]) -> str:
    return f"{starts} attempts started" + (f", and among them: {'; '.join(odd)}" if odd else "")


def _stories(admission: Admission, places: set[str]) -> dict[str | None, list[str]]:
    """Returns each attempt's event names in order, by attemptId or, where a target has none, by character."""
    stories: dict[str | None, list[str]] = defaultdict(list)
    for record in _connection_events(admission):
        if record.get("instanceId") in places and (record["event"] == ATTEMPT or record["event"] in OUTCOMES):
            stories[record.get("attemptId") or record.get("characterId")].append(record["event"])
    return stories


def _is_whole(key: str | None, story: list[str]) -> bool:
    """Whether there is a start and one outcome.

    The `admitted` of a later promotion is no second outcome; attempts without an id can only be counted.
    """
    if key is None:
        return len(story) == 2 * story.count(ATTEMPT)
    promoted = story[1:] == ["connection.queued", "connection.admitted"]
    return story[:1] == [ATTEMPT] and (promoted or (len(story) == 2 and story[1] in OUTCOMES))


@verifies("AD-OBS-03", isolation="quiet", waits="promote_within")
async def test_placements_and_admissions_are_logged_with_position_and_session(admission: Admission) -> None:
    arena = await admission.instance(capacity=1)
    inside = await admission.character()
    session = await arena.admit(inside)
    first, second = await arena.line_up(2)
    await _logged(admission, inside, "connection.admitted", sessionId=session.session_id)
    for position, character in enumerate((first, second)):
        await _logged(admission, character, "connection.queued", position=position)

    freed = moment(await arena.release(session.session_id, inside))
    promoted, _ = await arena.promoted(first, since=freed)
    await _logged(admission, first, "connection.admitted", sessionId=promoted.session_id)
    for character in (inside, first, second):
        _none_logged(admission, character, "connection.failed", "nobody was refused")


async def _logged(admission: Admission, character: Character, event: str, **said: object) -> None:
    """Raises Finding unless there is exactly one event of this name for this character, with these fields."""

    async def recorded() -> str:
        records = admission.events(event=event, characterId=character.id)
        return json.dumps([{name: whole(record.get(name)) for name in said} for record in records])

    await admission.settles(recorded, json.dumps([said]), why=f"{event} of one character")


@verifies("AD-OBS-03", isolation="quiet")
async def test_refusals_are_logged_with_the_code_that_the_client_got(admission: Admission) -> None:
    arena, draining = await admission.instance(), await admission.instance()
    ghost = Instance(admission, f"i-{uuid.uuid4().hex[:12]}")
    outdated, lost, suspended, foreign, twice, late = await admission.characters(6)
    await admission.suspend(suspended)
    await draining.drain()
    await arena.admit(twice)
    refusals = {
        outdated: ("AD-VER-01", await arena.fail(outdated)),
        lost: ("AD-ADMIT-06", await ghost.connect(lost)),
        suspended: ("AD-ADMIT-07", await arena.connect(suspended)),
        foreign: ("AD-SEC-01", await arena.connect(foreign, as_user=admission.stranger())),
        twice: ("AD-ADMIT-09", await draining.connect(twice)),
        late: ("AD-DRAIN-01", await draining.connect(late)),
    }

    for character, (owner, answer) in refusals.items():
        with admission.arranging(owner):
            expect(answer, refused())
        await _logged(admission, character, "connection.failed", reason=answer.reason)


@verifies("AD-OBS-03", isolation="quiet")
async def test_a_throttled_attempt_is_logged_as_throttled_and_not_as_failed(admission: Admission, T: SpecTime) -> None:
    arena = await admission.instance()
    failing, throttled = await admission.characters(2, admission.user())
    lock = await arena.lock(failing)
    with admission.arranging("AD-RATE-01"):
        expect_locked(T, [lock], await arena.connect(throttled))

    await _logged(admission, throttled, "connection.throttled")
    _none_logged(admission, throttled, "connection.failed", "it was not evaluated")


def _none_logged(admission: Admission, character: Character, event: str, why: str) -> None:
    none_of(map(json.dumps, admission.events(event=event, characterId=character.id)), f"{event} of this character", why)
