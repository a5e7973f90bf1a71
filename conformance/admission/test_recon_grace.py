"""Grace after a lost socket, resuming within it, and leaving without it (seed §2, §8; upstream FR-009, FR-010)."""

import json

import pytest

from holdfast.check.finding import Absent, demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.admission.client import Admission, Instance
from holdfast.conformance.admission.identities import Character
from holdfast.conformance.admission.judging import served
from holdfast.conformance.admission.values import epoch_ms, same_id
from holdfast.conformance.admission.wire import Answer, done, place, queued, refused, success
from holdfast.conformance.shared.wire import moment

GOING_AWAY = 1001


@pytest.mark.parametrize("close_code", [None, GOING_AWAY], ids=["drop", "going-away"])
@verifies("AD-RECON-02", waits="grace/2")
async def test_a_lost_session_keeps_its_slot_and_can_be_reclaimed(
    admission: Admission, T: SpecTime, close_code: int | None
) -> None:
    """Only a deliberate leave ends a session: a page reload closes its socket with 1001 and comes back."""
    arena = await admission.instance(capacity=1)
    lost, early, late = await admission.characters(3)
    session, socket = await arena.join(lost)
    gone = await (socket.drop() if close_code is None else socket.close(close_code))
    await T.sleep(T.prompt, "the target to notice the loss")

    expect(await arena.connect(early), queued(), why="the slot of a lost session")
    await T.sleep_until(gone, T.grace / 2, "half of the grace")
    expect(await arena.connect(late), queued(), why="the slot of a lost session")
    expect(await arena.connect(early), queued(), why="the slot of a lost session")
    expect(await arena.reclaim(lost, session.token, gone=gone), success(session.session_id))


@verifies("AD-RECON-02", part=2, waits="prompt_never")
async def test_a_lost_session_is_stored_in_grace_with_its_end(admission: Admission, T: SpecTime) -> None:
    arena, character, keys = await admission.instance(), await admission.character(), admission.keys()
    session, socket = await arena.join(character)
    gone = await socket.drop()

    async def in_grace() -> dict[str, object] | None:
        record = await keys.record(keys.name("session_data", session.session_id))
        return record if record.get("state") == "grace" else None

    record, _ = await T.until(in_grace, give_up=T.prompt_never, what="the state 'grace' in session:data")
    stamp = epoch_ms(record.get("graceExpiresAt"))
    if stamp is None:
        raise Absent(["graceExpiresAt, a time, in the session record"], json.dumps(record))
    end = await keys.at(stamp)
    T.at_least("grace", since=gone, seen=end, tolerance="slack", what="the stored grace")
    T.at_most("grace", since=gone, seen=end, tolerance="slack", what="the stored grace")


@pytest.mark.parametrize("share", [1 / 12, 11 / 12], ids=["early", "late"])
@verifies("AD-RECON-03", waits="2*grace")
async def test_the_token_resumes_the_session_past_those_who_wait(
    admission: Admission, T: SpecTime, share: float
) -> None:
    arena = await admission.instance(capacity=1)
    lost, waiting = await admission.characters(2)
    session, socket = await arena.join(lost)
    await arena.enqueue(waiting)
    gone = await socket.drop()
    await T.sleep_until(gone, share * T.token_ttl, "the reconnect")
    expect(await arena.reclaim(lost, session.token, gone=gone), success(session.session_id))
    await _still_first_in_line(arena, waiting)

    socket = await arena.attach(session.session_id, lost)
    socket.keep_beating(T.heartbeat_interval / 2)
    await T.sleep_until(gone, 2 * T.grace, "well past the first grace")
    await served(socket, "the resumed session")
    expect(await arena.connect(lost), refused("ALREADY_IN_SESSION"), why="the resumed session is still there")
    await _still_first_in_line(arena, waiting)


async def _still_first_in_line(arena: Instance, character: Character) -> None:
    seen = await arena.status(character)
    expect(seen, place(0), why="who waits")


@verifies("AD-RECON-03", waits="wait_tolerance")
async def test_a_resumed_session_takes_one_slot(admission: Admission) -> None:
    arena = await admission.instance(capacity=2)
    lost, second, third = await admission.characters(3)
    session, gone = await arena.dropped(lost)
    expect(await arena.reclaim(lost, session.token, gone=gone), success(session.session_id))

    expect(await arena.connect(second), success(), why="the second of two slots")
    expect(await arena.connect(third), queued(), why="both slots are taken")


@verifies("AD-RECON-03", part=2, isolation="quiet", waits="stale_reclaim + slack + prompt_never + wait_tolerance")
async def test_the_active_gauge_does_not_move_through_grace_and_reconnect(admission: Admission, T: SpecTime) -> None:
    arena, character = await admission.instance(), await admission.character()
    one = await admission.sessions_of_others() + 1
    session, socket = await arena.join(character)
    await _gauge_reaches(admission, T, one)

    gone = await admission.lose(socket)
    expect(await _active(admission), one, why="session_active_current in grace")
    expect(await arena.reclaim(character, session.token, gone=gone), success(session.session_id))
    expect(await _active(admission), one, why="session_active_current after the reconnect")


async def _active(admission: Admission) -> float:
    return (await admission.metrics()).total("session_active_current")


async def _gauge_reaches(admission: Admission, T: SpecTime, count: float) -> Moment:
    async def there() -> bool:
        return await _active(admission) == count

    _, seen = await T.until(there, give_up=T.prompt_never, what=f"session_active_current at {count:g}")
    return seen


@verifies("AD-RECON-09", waits="prompt_never")
async def test_a_leave_frees_slot_and_character_and_voids_the_token(admission: Admission, T: SpecTime) -> None:
    arena, leaver = await admission.instance(capacity=1), await admission.character()
    session, _ = await arena.join(leaver)
    left = await arena.leave(session.session_id, leaver)
    expect(left, done())

    expect(await arena.connect(leaver, token=session.token), refused(), why="the token of a session that was left")
    again, seen = await _enters_again(arena, leaver, T)
    T.at_most("prompt", since=moment(left), seen=seen, what="entering again after the leave")
    _a_new_one(session, again)


@verifies("AD-RECON-09", waits="prompt_never")
async def test_a_clean_close_of_the_socket_is_a_leave(admission: Admission, T: SpecTime) -> None:
    arena, leaver = await admission.instance(capacity=1), await admission.character()
    session, socket = await arena.join(leaver)
    left = await socket.close()

    again, seen = await _enters_again(arena, leaver, T)
    T.at_most("prompt", since=left, seen=seen, what="entering again after the close")
    _a_new_one(session, again)
    expect(await arena.connect(leaver, token=session.token), refused(), why="the token of a session that was left")


def _a_new_one(session: Answer, again: Answer) -> None:
    demand(not same_id(again.session_id, session.session_id), "a new session", "the one that was left is back")


async def _enters_again(arena: Instance, character: Character, T: SpecTime) -> tuple[Answer, Moment]:
    async def enter() -> Answer | None:
        answer = await arena.connect(character)
        if answer.outcome == "queued":
            await arena.unqueue(character)  # the slot is not free yet; a place in line would hide when it is
        return answer if answer.outcome == "success" else None

    return await T.until(enter, give_up=T.prompt_never, what="a new session after the leave")


@verifies("AD-RECON-09", part=2, isolation="quiet", waits="stale_reclaim + slack + 2*prompt_never")
async def test_the_active_gauge_falls_by_one_at_a_leave(admission: Admission, T: SpecTime) -> None:
    arena, others = await admission.instance(), await admission.sessions_of_others()
    (leaver, session), _ = await arena.fill(2)
    await _gauge_reaches(admission, T, others + 2)

    left = await arena.release(session.session_id, leaver)
    seen = await _gauge_reaches(admission, T, others + 1)
    T.at_most("prompt", since=moment(left), seen=seen, what="the gauge after the leave")
