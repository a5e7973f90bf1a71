"""The 10 s rule (seed §9 Deterministic Outcome): every attempt gets an outcome in time, and the true one."""

import json

from holdfast.check.finding import Finding, Inconclusive, NotApplicable, demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.admission.client import Admission, Instance
from holdfast.conformance.admission.faults import during_stall, in_time
from holdfast.conformance.admission.identities import Character
from holdfast.conformance.admission.judging import none_of
from holdfast.conformance.admission.sockets import Socket
from holdfast.conformance.admission.wire import (
    Answer,
    client_error,
    place,
    queued,
    refused,
    success,
    timed_out,
    unavailable,
)

OUTCOMES = ("success", "queued", "failed", "timeout")


def _received(answer: Answer) -> Moment:
    return Moment(answer.received, answer.received)


@verifies("AD-TIME-01", isolation="disruptive", waits="stall_long + wait_tolerance")
async def test_every_attempt_settles_by_the_deadline_whatever_it_carries(admission: Admission, T: SpecTime) -> None:
    arena = await admission.instance()
    plain, patient, dropped, replacing = await admission.characters(4)
    reconnect, _ = await arena.dropped(dropped)
    await arena.admit(replacing)
    offer = await arena.offer(replacing)

    answers, sent = await during_stall(
        admission,
        T.stall_long,
        lambda: arena.connect(plain),
        lambda: arena.connect(patient, extra={"timeout": 30000}),
        lambda: arena.connect(dropped, token=reconnect.token),
        lambda: arena.connect(replacing, replace=offer),
    )

    for answer, what in zip(answers, ("plain", "timeout=30000", "reconnection", "replacement"), strict=True):
        strict = client_error().matches(answer) and what.startswith("timeout")  # it may know no such field
        with admission.context.collect():
            in_time(T, answer, sent=sent, what=f"the answer to the {what} attempt")
            if answer.outcome not in OUTCOMES and not strict:
                raise Finding([f"outcome {outcome}" for outcome in OUTCOMES], answer.describe(), f"the {what} attempt")


async def _timed_out(admission: Admission, T: SpecTime) -> tuple[Character, Answer, Moment]:
    """Makes one attempt that a stall holds beyond the deadline; returns its answer, and when it was sent."""
    arena, character = await admission.instance(), await admission.character()
    [answer], sent = await during_stall(admission, T.stall_long, lambda: arena.connect(character))
    early = answer.received - answer.sent < T.attempt_deadline - T.deadline_slack
    if early and unavailable().matches(answer):
        raise NotApplicable("the target refuses with retry-after before the deadline, so no attempt of it expires")
    return character, answer, sent


@verifies("AD-TIME-02", isolation="disruptive", waits="stall_long")
async def test_an_expired_attempt_is_answered_with_timeout_at_the_deadline(admission: Admission, T: SpecTime) -> None:
    _, answer, sent = await _timed_out(admission, T)

    expect(answer, timed_out())
    none_of(answer.given("sessionId", "position"), "session or place", "a timeout hands out nothing")
    seen = _received(answer)
    T.at_least("attempt_deadline", since=sent, seen=seen, tolerance="deadline_slack", what="the timeout")
    in_time(T, answer, sent=sent, what="the timeout")


@verifies("AD-TIME-02", part=2, isolation="quiet", waits="stall_long + undo_settle")
async def test_an_expired_attempt_is_counted_once_as_timeout(admission: Admission, T: SpecTime) -> None:
    async def series() -> dict[str, float]:
        return (await admission.metrics()).series("connection_attempt_total", "reason")

    before = await series()
    _, answer, _ = await _timed_out(admission, T)
    expect(answer, timed_out())
    await T.sleep(T.undo_settle, "late work to be undone, which must not count again")

    after = await series()
    moved = {name: after[name] - before.get(name, 0) for name in after if after[name] != before.get(name, 0)}
    rise = ", ".join(f"{name} by {value:g}" for name, value in sorted(moved.items())) or "no series"
    expect(rise, "timeout by 1", why="what connection_attempt_total went up by")


@verifies("AD-TIME-02", part=3, isolation="disruptive", waits="stall_long + undo_settle")
async def test_an_expired_attempt_is_logged_with_its_elapsed_time(admission: Admission, T: SpecTime) -> None:
    since = T.now()
    character, answer, _ = await _timed_out(admission, T)
    expect(answer, timed_out())
    held = T.held_back(since)
    await admission.event(event="connection.timeout", characterId=character.id, within=T.prompt_never)
    await T.sleep(T.undo_settle, "late work to be undone, which must not be logged again")

    events = admission.events(event="connection.timeout", characterId=character.id)
    expect(len(events), 1, why="connection.timeout events of the attempt")
    elapsed = events[0].get("elapsedMs")
    if not isinstance(elapsed, int | float) or isinstance(elapsed, bool):
        raise Finding(["elapsedMs: a number"], json.dumps(events[0]))
    # Rounding down may take one millisecond off the deadline itself.
    lowest, highest = 1000 * T.attempt_deadline - 1, 1000 * (T.attempt_deadline + T.deadline_slack)
    if highest < elapsed <= highest + 1000 * held:
        raise Inconclusive(f"elapsedMs {elapsed}, and the machine held us or the nodes back for {held:.2f} s")
    if not lowest <= elapsed <= highest:
        raise Finding([f"elapsedMs between {lowest:.0f} and {highest:.0f}"], f"elapsedMs {elapsed}")


@verifies("AD-TIME-03")
async def test_every_outcome_is_told_as_soon_as_it_is_known(admission: Admission, T: SpecTime) -> None:
    arena = await admission.instance(capacity=1)
    outdated, first, second = await admission.characters(3)
    for character, build, legal, owner in (
        (outdated, "old", refused("VERSION_MISMATCH"), "AD-VER-01"),
        (first, admission.build, success(), "AD-ADMIT-01"),
        (second, admission.build, queued(position=0), "AD-POLL-01"),
    ):
        sent = T.now()
        answer = await arena.connect(character, build=build)
        with admission.arranging("AD-TIME-03" if answer.outcome == "timeout" else owner):
            expect(answer, legal)
        # Past the limit of a slow admission it was held back; past the prompt limit alone it was only slow.
        T.at_most("slow_admission", since=sent, seen=_received(answer), what=f"the answer {legal.describe()}")
        T.at_most("prompt", since=sent, seen=_received(answer), what=f"the answer {legal.describe()}")


@verifies("AD-TIME-03", part=2, isolation="disruptive", waits="slow_admission")
async def test_a_slow_admission_inside_the_deadline_is_a_success(admission: Admission, T: SpecTime) -> None:
    arena, character = await admission.instance(), await admission.character()
    [answer], sent = await during_stall(admission, T.slow_admission, lambda: arena.connect(character))
    healed = T.now()

    on_time = answer.received - sent.lo >= T.attempt_deadline
    if answer.outcome == "timeout" and on_time and healed.hi - sent.lo > T.attempt_deadline - T.deadline_slack:
        raise Inconclusive(f"the stall lasted {healed.hi - sent.lo:.2f} s, too close to the deadline")
    expect(answer, success(), unavailable())


async def _settled(admission: Admission) -> tuple[Instance, list[Character], Socket]:
    """Makes a success (with its socket), a place in line and a refusal, in this order."""
    arena = await admission.instance(capacity=1)
    inside, waiting, outdated = await admission.characters(3)
    _, socket = await arena.join(inside)
    await arena.enqueue(waiting)
    with admission.arranging("AD-VER-01"):
        expect(await arena.fail(outdated), refused("VERSION_MISMATCH"))
    return arena, [inside, waiting, outdated], socket


@verifies("AD-TIME-04", waits="3*attempt_deadline")
async def test_a_settled_attempt_is_not_timed_out_later(admission: Admission, T: SpecTime) -> None:
    arena, [inside, waiting, _], socket = await _settled(admission)
    await T.sleep(3 * T.attempt_deadline, "timers that should be dead to go off")

    await socket.beat()
    expect(await arena.connect(inside), refused("ALREADY_IN_SESSION"), why="its session is still there")
    expect(await arena.status(waiting), place(0), why="the waiting character")


@verifies("AD-TIME-04", part=2, waits="3*attempt_deadline")
async def test_a_settled_attempt_logs_no_timeout_later(admission: Admission, T: SpecTime) -> None:
    _, people, _ = await _settled(admission)
    await T.sleep(3 * T.attempt_deadline, "timers that should be dead to go off")

    for character, event in zip(people, ("connection.admitted", "connection.queued", "connection.failed"), strict=True):
        names = [record["event"] for record in admission.events(characterId=character.id) if "event" in record]
        told = ", ".join(map(str, names)) or "nothing"
        with admission.arranging("AD-OBS-03"):
            demand(event in names, f"{event} in the log", told, "control: an attempt that had this outcome")
        demand("connection.timeout" not in names, "no connection.timeout in the log", told, "a settled attempt")


@verifies("AD-TIME-04", part=3, isolation="quiet", waits="3*attempt_deadline")
async def test_a_settled_attempt_counts_no_timeout_later(admission: Admission, T: SpecTime) -> None:
    before = await admission.metrics()
    await _settled(admission)
    await T.sleep(3 * T.attempt_deadline, "timers that should be dead to go off")
    after = await admission.metrics()

    def moved(reason: str) -> float:
        name = "connection_attempt_total"
        return after.total(name, reason=reason) - before.total(name, reason=reason)

    with admission.arranging("AD-OBS-06"):
        for reason in ("success", "queued", "failed"):
            expect(moved(reason), 1, why=f"control: {reason} in connection_attempt_total, of one attempt")
    expect(moved("timeout"), 0, why="timeouts of attempts that had settled")
