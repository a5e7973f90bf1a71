"""Counters and histograms (seed §4 Observability Taxonomy): what each attempt adds, and what it leaves alone."""

import re
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from holdfast.check.finding import Absent, Finding, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.admission.client import Admission, Held, Instance, tally
from holdfast.conformance.admission.identities import Character
from holdfast.conformance.admission.limiter import expect_locked
from holdfast.conformance.admission.wire import locked, queued, refused, success
from holdfast.conformance.shared.wire import Request, moment

WAIT, LATENCY = "queue_wait_seconds", "admission_latency_seconds"
FAMILIES = {
    "connection_attempt_total": "counter",
    "reconnection_attempt_total": "counter",
    "reconnection_success_total": "counter",
    "rate_limit_block_total": "counter",
    "version_mismatch_total": "counter",
    "session_active_current": "gauge",
    "queue_depth_current": "gauge",
    "queue_depth_peak": "gauge",
    "queue_wait_seconds": "histogram",
    "admission_latency_seconds": "histogram",
}
MISMATCHED = 20
_TYPE_LINE = re.compile(r"^#[ \t]+TYPE[ \t]+(\S+)[ \t]+(\S+)", re.MULTILINE)


async def _attempts(admission: Admission) -> dict[str, float]:
    """Returns connection_attempt_total by outcome, without series that are zero."""
    found: dict[str, float] = {}
    for metrics in await admission.metrics_of_all():
        for reason, value in metrics.series("connection_attempt_total", "reason").items():
            found[reason] = found.get(reason, 0) + value
    return {reason: value for reason, value in found.items() if value}


def _rise(admission: Admission, before: Mapping[str, float]) -> Callable[[], Awaitable[str]]:
    async def look() -> str:
        now = await _attempts(admission)
        rise = {name: now.get(name, 0) - before.get(name, 0) for name in now if now[name] != before.get(name, 0)}
        return tally({name: round(value) for name, value in rise.items()})

    return look


@verifies("AD-OBS-06", isolation="quiet")
async def test_each_attempt_is_counted_once_under_its_outcome(admission: Admission) -> None:
    arena = await admission.instance(capacity=1)
    inside, outdated, waiting, failing = await admission.characters(4)
    await arena.lock(failing)
    for reason, attempt, legal, owner in (
        ("throttled", partial(arena.connect, failing), locked(), "AD-RATE-01"),
        ("success", partial(arena.connect, inside), success(), "AD-ADMIT-01"),
        ("failed", partial(arena.fail, outdated), refused("VERSION_MISMATCH"), "AD-VER-01"),
        ("queued", partial(arena.connect, waiting), queued(), "AD-POLL-01"),
    ):
        before = await _attempts(admission)
        with admission.arranging(owner):
            expect(await attempt(), legal)
        await admission.settles(
            _rise(admission, before),
            tally({reason: 1}),
            why=f"rise by an attempt that ends as {reason}",
        )


@verifies("AD-OBS-06", isolation="quiet", waits="promote_within")
async def test_promotions_and_ends_of_sessions_are_no_attempts(admission: Admission) -> None:
    arena, before = await admission.instance(capacity=2), await _attempts(admission)
    inside = await arena.fill(2)
    line = await arena.line_up(4)
    await arena.fail(await admission.character())
    for character, answer in inside:
        freed = moment(await arena.release(answer.session_id, character))
    for character in line[:2]:
        promoted, _ = await arena.promoted(character, since=freed)
        await arena.release(promoted.session_id, character)
    for character in line[2:]:
        await arena.promoted(character, since=freed)

    await admission.settles(
        _rise(admission, before),
        tally({"success": 2, "queued": 4, "failed": 1}),
        why="rise by 7 attempts, 4 promotions and 4 leaves",
    )


@verifies("AD-OBS-08", isolation="quiet", waits="poll_interval + promote_within")
async def test_waits_and_direct_admissions_are_observed_apart_and_in_seconds(admission: Admission, T: SpecTime) -> None:
    arena, free = await admission.instance(capacity=1), await admission.instance()
    held = await arena.hold()
    waiting, giving_up, direct = await admission.characters(3)
    waits, admissions = await _counts(admission)
    placed = await arena.enqueue(waiting)
    await arena.enqueue(giving_up)
    await arena.withdraw(giving_up)
    await T.sleep_until(moment(placed), T.scaled(5), "a wait to be measured")
    await _observed(admission, waits, admissions, "while one waits and one has given up")

    await _wait_is_observed(admission, T, arena, held, waiting, moment(placed))
    await _observed(admission, waits + 1, admissions, "after a wait")
    await _direct_admission_is_observed(admission, T, free, direct)
    await _observed(admission, waits + 1, admissions + 1, "after a direct admission")


async def _observed(admission: Admission, waits: float, admissions: float, when: str) -> None:
    seen = await _counts(admission)
    for name, count, legal in ((WAIT, seen[0], waits), (LATENCY, seen[1], admissions)):
        expect(count, legal, why=f"{name}_count {when}")


async def _counts(admission: Admission) -> tuple[float, float]:
    return await admission.total(f"{WAIT}_count"), await admission.total(f"{LATENCY}_count")


async def _wait_is_observed(
    admission: Admission, T: SpecTime, arena: Instance, held: Held, waiting: Character, placed: Moment
) -> None:
    waits, total = (await _counts(admission))[0], await admission.total(f"{WAIT}_sum")
    freed = moment(await arena.release(held.answer.session_id, held.character))
    _, promoted = await arena.promoted(waiting, since=freed)
    await admission.settles(
        lambda: admission.total(f"{WAIT}_count"),
        waits + 1,
        why=f"{WAIT}_count at promotion",
    )
    observed, waited = await admission.total(f"{WAIT}_sum") - total, promoted.since(placed)
    if not waited.lo - T.wait_tolerance <= observed <= waited.hi + T.wait_tolerance:
        raise Finding([f"{WAIT}_sum rises by {waited.lo:.2f} to {waited.hi:.2f}"], f"it rose by {observed:g}")


async def _direct_admission_is_observed(admission: Admission, T: SpecTime, free: Instance, direct: Character) -> None:
    admissions, total = (await _counts(admission))[1], await admission.total(f"{LATENCY}_sum")
    answer = await free.admit(direct)
    await admission.settles(
        lambda: admission.total(f"{LATENCY}_count"),
        admissions + 1,
        why=f"{LATENCY}_count",
    )
    observed, seen = await admission.total(f"{LATENCY}_sum") - total, answer.received - answer.sent
    if not 0 <= observed <= seen + T.deadline_slack:
        raise Finding([f"{LATENCY}_sum rises by no more than the client's {seen:.3f}"], f"it rose by {observed:g}")


@verifies("AD-OBS-09", isolation="quiet")
async def test_blocked_and_mismatched_attempts_have_counters_of_their_own(admission: Admission, T: SpecTime) -> None:
    arena, locked_out, limit = await admission.instance(), await admission.character(), T.count("rate_failures")
    blocked, mismatched = await _blocked_and_mismatched(admission)
    lock = await arena.lock(locked_out)
    await _counted(admission, blocked, mismatched + limit, "failures that lead to the lock")
    with admission.arranging("AD-RATE-01"):
        for _ in range(3):
            expect_locked(T, [lock], await arena.connect(locked_out))
    await _counted(admission, blocked + 3, mismatched + limit, "attempts under lock")

    for character in await admission.characters(MISMATCHED):
        with admission.arranging("AD-VER-01"):
            expect(await arena.fail(character), refused("VERSION_MISMATCH"))
    await _counted(admission, blocked + 3, mismatched + limit + MISMATCHED, "users with a wrong build")


async def _blocked_and_mismatched(admission: Admission) -> tuple[float, float]:
    return await admission.total("rate_limit_block_total"), await admission.total("version_mismatch_total")


async def _counted(admission: Admission, blocked: float, mismatched: float, by: str) -> None:
    async def told() -> str:
        return _both(*await _blocked_and_mismatched(admission))

    await admission.settles(told, _both(blocked, mismatched), why=f"after {by}")


def _both(blocked: float, mismatched: float) -> str:
    return f"rate_limit_block_total {blocked:g}, version_mismatch_total {mismatched:g}"


@verifies("AD-OBS-10", isolation="quiet")
async def test_a_fresh_node_exports_ten_families_with_their_types(admission: Admission) -> None:
    for node in admission.nodes:
        page = Request("GET", str(admission.context.target.observe["metrics"]))
        answer = await admission.call(page, None, node=node)
        types = dict(_TYPE_LINE.findall(answer.text))
        if not types:
            raise Absent(["Prometheus text with # TYPE lines"], answer.describe())
        for name, kind in FAMILIES.items():
            # OpenMetrics names the family of a counter without the end that its samples have.
            kinds = [types[each] for each in (name, name.removesuffix("_total")) if each in types]
            with admission.context.collect():
                expect(kinds[0] if kinds else "no such family", kind, why=f"{name} on node {node}")
