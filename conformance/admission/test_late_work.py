"""What a timed-out attempt leaves behind (seed §9 Deterministic Outcome): nothing."""

from collections.abc import Awaitable, Callable

import pytest

from holdfast.check.finding import expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.admission.client import Admission, Instance
from holdfast.conformance.admission.faults import during_stall, in_time
from holdfast.conformance.admission.identities import Character
from holdfast.conformance.admission.keys import Keys
from holdfast.conformance.admission.wire import Answer, place, queued, refused, success, timed_out, unavailable
from holdfast.conformance.shared.wire import status

# Redis runs late work either after the stall, or at once with only the answer late.
BOTH_DIRECTIONS = pytest.mark.parametrize("direction", ["both", "down"])


async def _expired(
    admission: Admission, T: SpecTime, direction: str, *calls: Callable[[], Awaitable[Answer]]
) -> Moment:
    """Makes the attempts during a stall; all must end as timeout or unavailable. Returns when it was over."""
    answers, sent = await during_stall(admission, T.stall_long, *calls, direction=direction)
    healed = T.now()
    for answer in answers:
        in_time(T, answer, sent=sent, what="the answer to an attempt during the stall")
        expect(answer, timed_out(), unavailable(), why="an attempt during the stall")
    return healed


async def _undone(T: SpecTime, healed: Moment, look: Callable[[], Awaitable[bool]], *, what: str) -> None:
    """Looks once when late work should be undone; then goes on looking, only to tell slow from never."""
    await T.sleep_until(healed, T.undo_settle, "late work to be undone")
    if not await look():
        _, seen = await T.until(look, give_up=T.prompt_never, what=what)
        T.at_most("undo_settle", since=healed, seen=seen, what=what)


@BOTH_DIRECTIONS
@verifies("AD-TIME-05", isolation="disruptive", waits="stall_long + undo_settle")
async def test_a_timed_out_attempt_holds_no_slot(admission: Admission, T: SpecTime, direction: str) -> None:
    arena = await admission.instance(capacity=2)
    late, second, third = await admission.characters(3)
    healed = await _expired(admission, T, direction, lambda: arena.connect(late))

    async def judged_on_current_state() -> bool:
        return (await arena.connect(late)).outcome == "success"

    await _undone(T, healed, judged_on_current_state, what="the same character to be admitted")
    expect(await arena.connect(second), success(), why="the instance still takes its capacity")
    expect(await arena.connect(third), queued(position=0, depth=1), why="the instance takes no more than its capacity")


@BOTH_DIRECTIONS
@verifies("AD-TIME-05", isolation="disruptive", waits="stall_long + undo_settle")
async def test_a_timed_out_attempt_holds_no_place_in_line(admission: Admission, T: SpecTime, direction: str) -> None:
    arena = await admission.instance(capacity=1)
    await arena.hold()
    waiting, late = await admission.characters(2)
    await arena.enqueue(waiting)
    healed = await _expired(admission, T, direction, lambda: arena.connect(late))

    async def gone() -> bool:
        return (await arena.status(late)).status == 404 and place(0, 1).matches(await arena.status(waiting))

    await _undone(T, healed, gone, what="status 404 of the character, and the depth of before")
    expect(await arena.status(waiting), place(0, 1), why="the place of the one that waits")
    expect(await arena.connect(late), queued(position=1, depth=2), why="tried again, it joins at the tail")


@BOTH_DIRECTIONS
@verifies("AD-TIME-05", isolation="disruptive", waits="stall_long + undo_settle + wait_tolerance")
async def test_a_timed_out_reconnect_or_replacement_changes_nothing(
    admission: Admission, T: SpecTime, direction: str
) -> None:
    arena = await admission.instance()
    dropped, running = await admission.characters(2)
    old, socket = await arena.join(running)
    offer = await arena.offer(running)
    session, gone = await arena.dropped(dropped)
    healed = await _expired(
        admission,
        T,
        direction,
        lambda: arena.connect(dropped, token=session.token),
        lambda: arena.connect(running, replace=offer),
    )
    await T.sleep_until(healed, T.undo_settle, "late work to be undone")

    answer = await arena.reclaim(dropped, session.token, gone=gone)
    expect(answer, success(session.session_id), why="the presented token stays usable")
    await socket.beat("its old session runs on")
    expect(await arena.connect(running), refused("ALREADY_IN_SESSION"), why="its old session runs on")
    expect(await arena.leave(old.session_id, running), status(200), why="its session has the old id")


@BOTH_DIRECTIONS
@verifies("AD-TIME-05", part=2, isolation="disruptive", waits="stall_long + undo_settle")
async def test_a_timed_out_attempt_leaves_no_record(admission: Admission, T: SpecTime, direction: str) -> None:
    free, full = await admission.instance(), await admission.instance(capacity=1)
    await free.hold()
    await full.hold()
    late, queueing = await admission.characters(2)
    healed = await _expired(admission, T, direction, lambda: free.connect(late), lambda: full.connect(queueing))

    keys = admission.keys()

    async def no_record() -> bool:
        return await _records(keys, free, late) == await _records(keys, full, queueing) == (0, 0, None, 1)

    await _undone(T, healed, no_record, what="no marker, no queue entry, and the slots of before")


async def _records(keys: Keys, arena: Instance, character: Character) -> tuple[int, int, str | None, int]:
    """Returns marker, queue entry and place of the character, and how many slots are taken."""
    return (
        await keys.ask("EXISTS", keys.name("session_char", character.id)),
        await keys.ask("EXISTS", keys.name("queue_entry", character.id)),
        await keys.ask("ZSCORE", keys.name("queue_pending", arena.id), character.id),
        await keys.ask("SCARD", keys.name("session_instance", arena.id)),
    )
