"""What a timed-out attempt leaves behind (seed §9 Deterministic Outcome): nothing."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from holdfast.check.finding import expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.admission.client import Admission, Held, Instance
from holdfast.conformance.admission.faults import during_stall, in_time, redis_cut, service_back, stalled
from holdfast.conformance.admission.identities import Character
from holdfast.conformance.admission.keys import Keys
from holdfast.conformance.admission.wire import Answer, done, place, queued, refused, success, timed_out, unavailable

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
    expect(await arena.leave(old.session_id, running), done(), why="its session has the old id")


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


# What a late attempt wanted. Each is undone in a way of its own.
LATE = pytest.mark.parametrize("late", ["admission", "reconnect", "replacement"])


async def _own_session(arena: Instance, character: Character, node: str) -> Held:
    """Gives the client a session that it was told of, in the place of one of which it was not, if there is one."""
    answer = await arena.connect(character, node=node)
    if answer.outcome != "success":
        answer = await arena.replaced(character, node=node)
    return await arena.keep(character, answer, node=node)


async def _late_call(arena: Instance, late: str, *, slow: str, other: str) -> tuple[Character, Awaitable[Answer]]:
    """Prepares an attempt through the slow node; everything before it goes through the other."""
    character = await arena.admission.character()
    if late == "admission":
        return character, arena.connect(character, node=slow)
    if late == "reconnect":
        session, _ = await arena.dropped(character, node=other)
        return character, arena.connect(character, token=session.token, node=slow)
    await arena.join(character, node=other)
    offer = await arena.offer(character, node=other)
    return character, arena.connect(character, replace=offer, node=slow)


async def _overtaken(admission: Admission, T: SpecTime, late: str) -> tuple[Instance, Held]:
    """Lets an attempt take effect whose answer never comes; before its deadline the client has gone on elsewhere.

    Returns the session that it has there, after the end of the stall.
    """
    slow, other, *_ = admission.nodes
    arena = await admission.instance()
    character, call = await _late_call(arena, late, slow=slow, other=other)
    async with stalled(admission, node=slow, direction="down"):
        sent = T.now()
        pending = asyncio.ensure_future(call)
        await T.sleep(T.deadline_slack, "Redis to run the attempt")
        held = await _own_session(arena, character, other)
        await T.sleep_until(sent, T.stall_long, "the stall to end")
    answer = await pending
    with admission.arranging("AD-TIME-01"):
        expect(answer, timed_out(), unavailable(), why="an attempt during the stall")
    return arena, held


@LATE
@verifies("AD-TIME-05", part=3, isolation="disruptive", nodes=2, waits="stall_long + undo_settle")
async def test_undoing_late_work_spares_what_the_client_did_meanwhile(
    admission: Admission, T: SpecTime, late: str
) -> None:
    arena, held = await _overtaken(admission, T, late)
    await T.sleep(T.undo_settle, "late work to be undone")
    await _has_only(arena, held)


async def _has_only(arena: Instance, held: Held) -> None:
    """Raises Finding unless the character has this session and no other."""
    await held.socket.beat("the session that the client was given through the other node")
    for node in arena.admission.nodes[:2]:
        again = await arena.connect(held.character, node=node)
        expect(again, refused("ALREADY_IN_SESSION"), why=f"it has its one session, asked through {node}")
    left = await arena.leave(held.answer.session_id, held.character)
    expect(left, done(), why="the session is the one that it was told of")
    expect(await arena.connect(held.character), success(), why="after the leave nothing of it is left")


@LATE
@verifies("AD-TIME-05", part=3, isolation="disruptive", nodes=2, waits="stale_reclaim_grace + undo_settle + recovery")
async def test_work_that_is_undone_long_after_spares_what_has_come_since(
    admission: Admission, T: SpecTime, late: str
) -> None:
    """The node loses Redis before it can undo. What it made goes stale, and the client comes back elsewhere."""
    slow, other, *_ = admission.nodes
    arena, free = await admission.instance(), await admission.instance()
    probe = await admission.character()
    character, call = await _late_call(arena, late, slow=slow, other=other)
    await admission.deployment.link(slow).stall("down")
    pending = asyncio.ensure_future(call)
    await T.sleep(T.deadline_slack, "Redis to run the attempt")
    async with redis_cut(admission, node=slow):
        await T.sleep(admission.stale_bound(), "sessions without a client to go stale")
        held = await _own_session(arena, character, other)
    with admission.arranging("AD-TIME-01"):
        expect(await pending, timed_out(), unavailable(), why="an attempt whose answer was lost")
    await service_back(free, probe, since=T.now(), node=slow)
    await T.sleep(T.undo_settle, "late work to be undone")
    await _has_only(arena, held)


@verifies("AD-TIME-05", part=3, isolation="disruptive", nodes=2, waits="stall_long + undo_settle")
async def test_undoing_late_work_spares_a_place_that_the_client_was_told(admission: Admission, T: SpecTime) -> None:
    slow, other, *_ = admission.nodes
    arena = await admission.instance(capacity=1)
    await arena.hold(node=other)
    waiting = await admission.character()
    async with stalled(admission, node=slow, direction="down"):
        sent = T.now()
        pending = asyncio.ensure_future(arena.connect(waiting, node=slow))
        await T.sleep(T.deadline_slack, "Redis to run the attempt")
        told = await arena.enqueue(waiting, node=other)
        await T.sleep_until(sent, T.stall_long, "the stall to end")
    with admission.arranging("AD-TIME-01"):
        expect(await pending, timed_out(), unavailable(), why="an attempt during the stall")
    await T.sleep(T.undo_settle, "late work to be undone")

    expect(
        await arena.status(waiting),
        place(told.position or 0, 1),
        why="the place that it was told through the other node",
    )
    expect(await arena.connect(waiting), queued(position=told.position or 0), why="asked again, it has its place")


@LATE
@verifies("AD-OUT-04", part=3, isolation="disruptive", nodes=2, waits="stall_long + recovery")
async def test_a_node_returns_also_if_its_late_work_is_overtaken(admission: Admission, T: SpecTime, late: str) -> None:
    """What the node still wants to undo is no longer there, or no longer its own; that must not keep it away."""
    slow, other, *_ = admission.nodes
    free, probe = await admission.instance(), await admission.character()
    arena, held = await _overtaken(admission, T, late)
    async with redis_cut(admission, node=slow):
        await T.sleep(T.deadline_slack, "the node to lose Redis")
    healed = T.now()

    seen = await service_back(free, probe, since=healed, node=slow)
    T.at_most("recovery", since=healed, seen=seen, what="the return of service")
    await held.socket.beat("the session that the client was given through the other node")
    expect(await arena.connect(held.character, node=other), refused("ALREADY_IN_SESSION"), why="its one session")
