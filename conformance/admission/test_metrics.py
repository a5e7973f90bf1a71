"""Counters and histograms (seed §4 Observability Taxonomy): what each attempt adds, and what it leaves alone."""

import re
from collections.abc import Awaitable, Callable, Mapping

from holdfast.check import verifies
from holdfast.conformance.admission.client import Admission, Instance, moment
from holdfast.conformance.admission.identities import Character
from holdfast.conformance.admission.wire import Answer, Request, locked, queued, refused, success
from holdfast.finding import Absent, Finding, expect
from holdfast.spectime import SpecTime

OUTCOMES = ("success", "failed", "queued", "timeout", "throttled")
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


async def _attempts(admission: Admission) -> dict[str, float]:
    """connection_attempt_total by outcome; series that were never counted up are left out."""
    found: dict[str, float] = {}
    for metrics in await admission.metrics_of_all():
        for reason, value in metrics.series("connection_attempt_total", "reason").items():
            found[reason] = found.get(reason, 0) + value
    return {reason: value for reason, value in found.items() if value}


def _rise(admission: Admission, before: Mapping[str, float]) -> Callable[[], Awaitable[dict[str, float]]]:
    async def look() -> dict[str, float]:
        now = await _attempts(admission)
        return {name: now.get(name, 0) - before.get(name, 0) for name in now if now[name] != before.get(name, 0)}

    return look


@verifies("AD-OBS-06", isolation="quiet")
async def test_each_attempt_is_counted_once_under_its_outcome(admission: Admission) -> None:
    arena = await admission.instance(capacity=1)
    inside, outdated, waiting, failing = await admission.characters(4)
    await arena.lock(failing)
    for reason, attempt, legal in (
        ("success", arena.connect(inside), success()),
        ("failed", arena.fail(outdated), refused("VERSION_MISMATCH")),
        ("queued", arena.connect(waiting), queued()),
        ("throttled", arena.connect(failing), locked()),
    ):
        before = await _attempts(admission)
        expect(await attempt, legal)
        await admission.settles(_rise(admission, before), {reason: 1.0}, why=f"rise by an attempt that ends as {reason}")


@verifies("AD-OBS-06", isolation="quiet", waits="promote_within")
async def test_promotions_and_ends_of_sessions_are_no_attempts(admission: Admission, T: SpecTime) -> None:
    arena, before = await admission.instance(capacity=2), await _attempts(admission)
    inside = await arena.fill(2)
    line = await arena.line_up(4)
    await arena.fail(await admission.character())
    for character, answer in inside:
        freed = moment(await arena.leave(answer.session_id, character))
    for character in line[:2]:
        promoted, _ = await arena.admitted(character, within=T.promote_never, since=freed)
        await arena.leave(promoted.session_id, character)
    for character in line[2:]:
        await arena.admitted(character, within=T.promote_never, since=freed)

    wanted = {"success": 2.0, "queued": 4.0, "failed": 1.0}
    await admission.settles(_rise(admission, before), wanted, why="rise by 7 attempts, 4 promotions and 4 leaves")


@verifies("AD-OBS-08", isolation="quiet", waits="poll_interval + promote_within")
async def test_a_wait_is_observed_at_promotion_in_seconds(admission: Admission, T: SpecTime) -> None:
    arena = await admission.instance(capacity=1)
    held = await arena.hold()
    waiting, before = await admission.character(), await _observations(admission)
    placed = moment(await arena.enqueue(waiting))
    await T.sleep_until(placed, T.scaled(5), "a wait to be measured")
    expect(await _observations(admission), before, why="observations while the character waits")

    freed = moment(await arena.leave(held.answer.session_id, held.character))
    _, promoted = await arena.admitted(waiting, within=T.promote_never, since=freed)
    after = await _observed(admission, {**before, "queue_wait_seconds": before["queue_wait_seconds"] + 1})
    waited, seen = promoted.since(placed), after["queue_wait_seconds"] - before["queue_wait_seconds"]
