"""The lock of the limiter (seed §3 Rate Limiting, upstream FR-013): its begin, its length, its answers."""

import math
from dataclasses import dataclass

from holdfast.check.finding import Finding, demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.admission.client import Admission, Instance
from holdfast.conformance.admission.identities import Character, User
from holdfast.conformance.admission.limiter import expect_locked, in_one_window, same_hint
from holdfast.conformance.admission.wire import Answer, locked, place, refused, success
from holdfast.conformance.shared.wire import moment, status


@verifies("AD-RATE-01", waits="0.7*rate_window + 1.1*rate_lock + slack")
async def test_the_fifth_failure_locks_for_a_minute_whatever_is_tried_meanwhile(
    admission: Admission, T: SpecTime
) -> None:
    """The fifth failure comes late in the window, so that a lock that ends with the window ends visibly too early."""
    arena, unlucky = await admission.instance(), await admission.character()
    for _ in range(T.count("rate_failures") - 1):
        first = await arena.fail(unlucky)
        _a_failure(admission, first)
    await T.sleep_until(moment(first), T.scaled(40), "two thirds of the window")
    fifth = await arena.fail(unlucky)
    _a_failure(admission, fifth)

    every, last = T.scaled(5), T.rate_lock - T.slack
    for after in [step * every for step in range(math.ceil(last / every))] + [last]:
        await T.sleep_until(moment(fifth), after, "the lock holds")
        expect_locked(T, [fifth], await arena.connect(unlucky))
    await T.sleep_until(moment(fifth), T.rate_lock + T.slack, "the lock has lifted by itself")
    answer = await arena.connect(unlucky)
    if locked().matches(answer):
        await T.sleep(every, "the next try")
        answer = await arena.connect(unlucky)
    expect(answer, success(), why="the lock runs from the fifth failure, not from the last throttled attempt")


def _a_failure(admission: Admission, answer: Answer) -> None:
    """Raises unless it was evaluated and failed; a lock that comes too early is the limiter's own fault."""
    with admission.arranging("AD-RATE-01" if answer.reason == "RATE_LIMITED" else "AD-VER-01"):
        expect(answer, refused("VERSION_MISMATCH"))


@verifies("AD-RATE-01", part=2)
async def test_the_records_of_window_and_lock_expire_by_themselves(admission: Admission, T: SpecTime) -> None:
    arena, unlucky, keys = await admission.instance(), await admission.character(), admission.keys()
    window = keys.name("ratelimit_window", unlucky.user.id)
    _a_failure(admission, await arena.fail(unlucky))
    _ends_within_its_bound(T, await keys.ask("PTTL", window))
    failures = [await arena.fail(unlucky) for _ in range(T.count("rate_failures") - 1)]

    expect_locked(T, failures, await arena.connect(unlucky))
    lock = await keys.ask("PTTL", keys.name("ratelimit_lock", unlucky.user.id))
    if not 0 < lock / 1000 <= T.rate_lock:
        raise Finding([f"ratelimit:lock expires within {T.rate_lock:g} s"], _life(lock))
    _ends_within_its_bound(T, await keys.ask("PTTL", window))


def _ends_within_its_bound(T: SpecTime, pttl: int) -> None:
    if pttl <= 0:
        raise Finding(["ratelimit:window carries an expiry"], _life(pttl))
    now = T.now()
    end = Moment(now.lo + pttl / 1000, now.hi + pttl / 1000)
    T.at_most("window_key_ttl_max", since=now, seen=end, what="the window record lives")


def _life(pttl: int) -> str:
    return {-1: "a key without expiry", -2: "no such key"}.get(pttl, f"a life of {pttl / 1000:g} s")


@verifies("AD-RATE-02", waits="rate_lock")
async def test_every_answer_tells_the_attempts_left_and_then_the_time_left(admission: Admission, T: SpecTime) -> None:
    arena, unlucky = await admission.instance(), await admission.character()
    failures = [await arena.fail(unlucky) for _ in range(T.count("rate_failures"))]
    in_one_window(T, failures)
    for answer, left in zip(failures, reversed(range(len(failures))), strict=True):
        with admission.context.collect():
            demand(answer.remaining == left, f"{left} failures left", answer.describe(), "one by one")

    fifth = failures[-1]
    for after in (0.0, T.scaled(10), T.rate_lock - T.slack):
        await T.sleep_until(moment(fifth), after, "the lock time to fall")
        probe = await arena.connect(unlucky)
        with admission.arranging("AD-RATE-01"):
            expect_locked(T, [fifth], probe)
        expect(probe.retry_after, *_whole_seconds_left(T, fifth, probe), why="retryAfterSeconds")
        if "Retry-After" not in probe.headers:
            admission.context.warn("a throttled attempt comes without a Retry-After header")
        else:
            demand(same_hint(probe), "a Retry-After header that tells what the body tells", probe.describe())


def _whole_seconds_left(T: SpecTime, fifth: Answer, probe: Answer) -> list[int]:
    """Returns the legal whole seconds: the lock began during the fifth failure and was read during the probe.

    Rounding either way is legal.
    """
    least = math.floor(fifth.sent + T.rate_lock - probe.received)
    most = math.ceil(fifth.received + T.rate_lock - probe.sent)
    return list(range(max(1, least), max(1, min(most, math.ceil(T.rate_lock))) + 1))


@verifies("AD-RATE-06")
async def test_under_lock_nothing_is_judged_started_or_touched(admission: Admission, T: SpecTime) -> None:
    home, full, user = await admission.instance(), await admission.instance(capacity=1), admission.user()
    inside = await admission.character(user)
    _, socket = await home.join(inside)
    await full.fill(1)
    (bystander,) = await full.line_up(1)

    tried = await _try_all_under_lock(admission, T, user, full)

    expect_locked(T, [tried.lock], await home.connect(inside))
    for arena, character in tried.places:
        expect(await arena.status(character), status(404), why="a throttled attempt leaves no place in line")
    expect(await full.status(bystander), place(0, 1), why="the queue of the full instance is as before")
    await socket.beat("a session that was opened before the lock")


@verifies("AD-RATE-06", part=2)
async def test_under_lock_no_record_of_session_or_queue_is_written(admission: Admission, T: SpecTime) -> None:
    full, keys = await admission.instance(capacity=1), admission.keys()
    await full.fill(1)
    tried = await _try_all_under_lock(admission, T, admission.user(), full)

    for arena, character in tried.places:
        expect(await keys.ask("EXISTS", keys.name("session_char", character.id)), 0, why="session:char")
        expect(await keys.ask("EXISTS", keys.name("queue_entry", character.id)), 0, why="queue:entry")
        waiting = await keys.ask("ZSCORE", keys.name("queue_pending", arena.id), character.id)
        demand(waiting is None, "no member of queue:pending", f"a member with score {waiting}")


@dataclass(frozen=True)
class _Tried:
    lock: Answer
    places: list[tuple[Instance, Character]]


async def _try_all_under_lock(admission: Admission, T: SpecTime, user: User, full: Instance) -> _Tried:
    """Makes attempts that would be refused, admitted and queued without the lock, each by its own character."""
    free = await admission.instance()
    failing, outdated, suspended, welcome, late = await admission.characters(5, user)
    await admission.suspend(suspended)
    lock = await free.lock(failing)
    with admission.arranging("AD-RATE-01"):
        expect_locked(T, [lock], await free.connect(failing))
    expect_locked(T, [lock], await free.connect(outdated, build="old"))
    expect_locked(T, [lock], await free.connect(suspended))
    expect_locked(T, [lock], await free.connect(welcome))
    expect_locked(T, [lock], await full.connect(late))
    return _Tried(lock, [(free, outdated), (free, suspended), (free, welcome), (full, late)])
