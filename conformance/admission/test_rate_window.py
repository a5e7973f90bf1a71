"""The rolling window of the limiter (seed §3 Rate Limiting)."""

import email.utils
import math
from collections.abc import Sequence

from holdfast.check.finding import Finding, Inconclusive, NotObservable, demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.admission.client import Admission, Instance
from holdfast.conformance.admission.identities import Character
from holdfast.conformance.admission.limiter import expect_locked, owner_of_count
from holdfast.conformance.admission.wire import Answer, refused, success
from holdfast.conformance.shared.wire import moment

# Shares of the window: how long before a border a burst begins, and how uncertain the border is.
BEFORE_BORDER, BORDER_DOUBT = 0.1, 0.02


@verifies("AD-RATE-03", waits="1.25*rate_window + slack")
async def test_a_burst_across_a_window_border_is_locked(admission: Admission, T: SpecTime) -> None:
    """The burst crosses a multiple of the window's length by the server's clock, where fixed windows would begin."""
    arena, unlucky, other = await admission.instance(), await admission.character(), await admission.character()
    border = _next_border(T, await _server_clock(T, arena, other))
    await T.sleep_until(border, -BEFORE_BORDER * T.rate_window, "the end of the server's window")
    failures = await admission.burst([lambda: arena.fail(unlucky)] * (T.count("rate_failures") - 2))
    if max(answer.received for answer in failures) > border.lo - BORDER_DOUBT * T.rate_window:
        raise Inconclusive("the failures before the border were answered too late to be surely before it")
    await T.sleep_until(border, BORDER_DOUBT * T.rate_window, "the start of the server's next window")
    failures += [await arena.fail(unlucky) for _ in range(2)]

    _all_evaluated(failures)
    expect_locked(T, failures, await arena.connect(unlucky))
    with admission.arranging("AD-RATE-04"):
        expect(await arena.connect(other), success(), why="control: only this user is locked")


def _all_evaluated(failures: Sequence[Answer]) -> None:
    for answer in failures:
        expect(answer, refused("VERSION_MISMATCH"), why="a failure before the lock")


async def _server_clock(T: SpecTime, arena: Instance, character: Character) -> float:
    """Returns how far the server's clock is ahead of our monotonic one; waits for a tick of Date, in whole seconds."""
    before = (await arena.status(character)).headers.get("Date")
    if before is None:
        raise NotObservable("a Date header, by which the server's clock places the border of a minute")
    arena.admission.context.transcript.note(f"[Date: {before}]")

    async def tick() -> float | None:
        answer = await arena.status(character)
        date = answer.headers.get("Date", before)
        return email.utils.parsedate_to_datetime(date).timestamp() - answer.received if date != before else None

    try:
        return (await T.until(tick, give_up=T.recovery, what="the next second by the server's clock"))[0]
    except Finding as stopped:
        raise Inconclusive(f"the server's clock, by its Date header, does not move: {stopped}") from stopped


def _next_border(T: SpecTime, server_ahead: float) -> Moment:
    """Returns the next multiple of the window's length by the server's clock that leaves time for a burst before it."""
    soonest = T.now().hi + server_ahead + 1.5 * BEFORE_BORDER * T.rate_window
    at = math.ceil(soonest / T.rate_window) * T.rate_window - server_ahead
    return Moment(at, at)


@verifies("AD-RATE-03", waits="1.1*rate_window")
async def test_a_window_cleared_by_its_first_failure_would_forget_the_rest(admission: Admission, T: SpecTime) -> None:
    arena, unlucky = await admission.instance(), await admission.character()
    start = moment(await arena.fail(unlucky))
    await T.sleep_until(start, T.scaled(57), "three seconds before the first failure leaves the window")
    failures = [await arena.fail(unlucky) for _ in range(2)]
    await T.sleep_until(start, T.scaled(62), "the first failure has left the window")
    failures += await _fail_down_to_none_left(T, arena, unlucky)

    expect_locked(T, failures, await arena.connect(unlucky))


async def _fail_down_to_none_left(T: SpecTime, arena: Instance, unlucky: Character) -> list[Answer]:
    """Fails until none is left, with two failures in the window already; judges the remaining count of each answer."""
    failures = [await arena.fail(unlucky) for _ in range(T.count("rate_failures") - 2)]
    for answer, left in zip(failures, reversed(range(len(failures))), strict=True):
        legal = answer.reason == "VERSION_MISMATCH" and answer.remaining == left
        with arena.admission.arranging(owner_of_count(answer, "AD-RATE-03")):
            demand(legal, f"VERSION_MISMATCH, {left} failures left", answer.describe(), "failures in the window")
    return failures


@verifies("AD-RATE-03")
async def test_failures_in_one_instant_count_one_by_one(admission: Admission, T: SpecTime) -> None:
    arena, unlucky = await admission.instance(), await admission.character()
    limit = T.count("rate_failures")
    failures = await admission.burst([lambda: arena.fail(unlucky)] * limit)

    _all_evaluated(failures)
    expect_locked(T, failures, await arena.connect(unlucky))


@verifies("AD-RATE-03", waits="1.1*rate_window")
async def test_each_failure_leaves_the_window_on_its_own(admission: Admission, T: SpecTime) -> None:
    arena, unlucky = await admission.instance(), await admission.character()
    for _ in range(2):
        first = await arena.fail(unlucky)
    await T.sleep_until(moment(first), T.scaled(50), "most of the window")
    failures = [await arena.fail(unlucky) for _ in range(2)]
    await T.sleep_until(moment(first), T.scaled(62), "the first two failures have left the window")

    failures += await _fail_down_to_none_left(T, arena, unlucky)
    expect_locked(T, failures, await arena.connect(unlucky))


@verifies("AD-RATE-03", waits="1.1*rate_window")
async def test_failures_older_than_the_window_no_longer_count(admission: Admission, T: SpecTime) -> None:
    arena, unlucky = await admission.instance(), await admission.character()
    almost = T.count("rate_failures") - 1
    for _ in range(almost):
        last = await arena.fail(unlucky)
    await T.sleep_until(moment(last), T.scaled(62), "all failures have left the window")
    for _ in range(almost):
        expect(await arena.fail(unlucky), refused("VERSION_MISMATCH"))

    expect(await arena.connect(unlucky), success())
