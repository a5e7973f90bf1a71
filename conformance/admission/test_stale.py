"""Stale session cleanup (seed §8): expired graces, silent sessions and crashed nodes heal by themselves."""

import asyncio
import math
from dataclasses import replace
from functools import partial

from holdfast.check.finding import Inconclusive, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.admission.client import Admission, Instance
from holdfast.conformance.admission.identities import Character
from holdfast.conformance.admission.sockets import Socket
from holdfast.conformance.admission.wire import Answer, refused, success
from holdfast.conformance.shared.wire import moment

# Heartbeat period in heartbeat intervals that is late but not stale.
LATE = 1.9


async def _free_by_the_bounds(
    arena: Instance, character: Character, token: str, gone: Moment, *, noticed_late: float = 0.0
) -> None:
    """Raises Finding unless the token is refused after the grace, and slot and character are free by grace_reclaim.

    The grace begins when the target notices the drop, for which it needs a processor.
    """
    T = arena.admission.T
    await T.sleep_until(gone, T.grace + T.slack, "the grace to be over")
    with T.unless(lambda: noticed_late, T.slack):
        expect(await arena.connect(character, token=token), refused(), why="the grace is over")
    await T.sleep_until(gone, T.grace_reclaim + T.slack, "the janitor")
    expect(await arena.connect(character), success(), why="slot and character are free again")


@verifies("AD-STALE-01", waits="grace_reclaim + slack")
async def test_an_expired_grace_frees_slot_and_character(admission: Admission, T: SpecTime) -> None:
    arena, other_arena = await admission.instance(capacity=1), await admission.instance(capacity=1)
    character, other = await admission.characters(2)
    session, gone = await arena.dropped(character)
    noticed_late = T.held_back(gone)
    control, other_gone = await other_arena.dropped(other)

    await T.sleep_until(other_gone, T.grace / 2, "half of the grace")
    await other_arena.resume(other, control, gone=other_gone)
    await _free_by_the_bounds(arena, character, session.token, gone, noticed_late=noticed_late)


@verifies("AD-STALE-01", part=2, waits="grace_reclaim + slack")
async def test_an_expired_grace_leaves_no_record(admission: Admission, T: SpecTime) -> None:
    arena, character, keys = await admission.instance(capacity=1), await admission.character(), admission.keys()
    session, gone = await arena.dropped(character)

    async def expired() -> bool:
        return not await keys.ask("EXISTS", keys.name("session_reconnect", session.token))

    await T.sleep_until(gone, T.grace - T.slack, "almost the whole grace")
    _, seen = await T.until(expired, give_up=T.janitor_interval, every=T.slack / 4, what="the token's key to go")
    T.at_most("grace", since=gone, seen=seen, tolerance="slack", what="the token's key is there")

    async def cleaned() -> bool:
        marker = await keys.ask("EXISTS", keys.name("session_char", character.id))
        member = await keys.ask("SISMEMBER", keys.name("session_instance", arena.id), session.session_id)
        return not marker and not member

    _, seen = await T.until(
        cleaned, give_up=T.grace_reclaim + 2 * T.slack, since=gone, every=T.slack / 4, what="marker and slot to go"
    )
    T.at_most("grace_reclaim", since=gone, seen=seen, tolerance="slack", what="marker and slot are there")


@verifies("AD-STALE-01", part=3, isolation="quiet", waits="stale_reclaim + grace_reclaim + 2*slack")
async def test_an_expired_grace_lowers_the_gauge_by_one(admission: Admission, T: SpecTime) -> None:
    async def active() -> float:
        return (await admission.metrics()).total("session_active_current")

    arena, _ = await admission.instance(), await admission.sessions_of_others()
    await arena.hold()
    leaving = await admission.character()
    before = await active()
    _, gone = await arena.dropped(leaving)
    with admission.arranging("AD-OBS-07"):
        expect(await active(), before + 1, why="session_active_current during the grace, which holds its slot")

    async def lower() -> bool:
        return await active() <= before

    _, seen = await T.until(
        lower,
        give_up=T.grace_reclaim + 2 * T.slack,
        since=gone,
        every=T.slack / 4,
        what="session_active_current to fall",
    )
    T.at_most("grace_reclaim", since=gone, seen=seen, tolerance="slack", what="the slot counts")
    expect(await active(), before, why="session_active_current, lower by exactly one")


@verifies("AD-STALE-01", part=4, isolation="disruptive", waits="grace_reclaim + slack + wait_tolerance")
async def test_a_grace_outlives_the_node_that_wrote_it_and_still_ends(admission: Admission, T: SpecTime) -> None:
    arena, character = await admission.instance(capacity=1), await admission.character()
    session, _ = await arena.dropped(character)
    await admission.kill(admission.nodes[0])
    await admission.restart(admission.nodes[0])

    await _free_by_the_bounds(arena, character, session.token, T.now())


async def _goes_stale(arena: Instance, character: Character, silent_since: Moment) -> None:
    """Raises Finding unless the session is there before the stale limit and gone by the bound."""
    T = arena.admission.T
    await T.sleep_until(silent_since, T.stale_limit - T.slack, "almost the stale limit")
    early = await arena.connect(character)
    if early.outcome == "success" and early.received > silent_since.lo + T.stale_limit:
        raise Inconclusive("the suite asked too late to see the session before the stale limit")
    expect(early, refused("ALREADY_IN_SESSION"), why="two missed heartbeats are tolerated")
    await T.sleep_until(silent_since, arena.admission.stale_bound(), "the janitor")
    expect(await arena.connect(character), success(), why="silent for more than two heartbeats, and a janitor run")


async def _silent(admission: Admission) -> tuple[Instance, list[tuple[Character, Answer, Moment]]]:
    """One session that falls silent with its TCP connection kept open, and one that was never attached."""
    arena = await admission.instance(capacity=2)
    muted, absent = await admission.characters(2)
    first, socket = await arena.join(muted)
    await socket.beat("a session with its socket open")
    since = socket.mute()
    second = await arena.admit(absent)
    return arena, [(muted, first, since), (absent, second, moment(second))]


async def _lives(arena: Instance, character: Character, socket: Socket, *, every: float, beats: int) -> None:
    """Raises Finding unless the session is served, and a second one refused, at the end of every gap between beats."""
    T = arena.admission.T
    last = await _beat(T, socket)
    for _ in range(beats):
        await T.sleep(last.lo + every - T.now().hi, "the next heartbeat")
        sending = T.now()
        with T.unless(partial(T.held_back, sending), T.stale_limit - (sending.hi - last.lo)):
            beat = await _beat(T, socket)
            expect(await arena.connect(character), refused("ALREADY_IN_SESSION"), why="its heartbeats came in time")
        last = beat


async def _beat(T: SpecTime, socket: Socket) -> Moment:
    sent = T.now()
    await socket.beat()
    return replace(sent, hi=T.now().hi)


async def _beats_late(arena: Instance, character: Character, socket: Socket) -> None:
    await _lives(arena, character, socket, every=LATE * arena.admission.T.heartbeat_interval, beats=4)


async def _beats_steadily(arena: Instance, character: Character, socket: Socket) -> None:
    T = arena.admission.T
    beats = math.ceil(5 * T.janitor_interval / T.heartbeat_interval)
    await _lives(arena, character, socket, every=T.heartbeat_interval, beats=beats)


@verifies("AD-STALE-02", waits="stale_reclaim_grace + slack")
async def test_a_silent_session_is_removed_after_two_missed_heartbeats(admission: Admission) -> None:
    arena, sessions = await _silent(admission)
    await asyncio.gather(*(_goes_stale(arena, character, since) for character, _, since in sessions))


@verifies("AD-STALE-02", waits="8*heartbeat_interval")
async def test_beats_less_than_two_intervals_apart_keep_a_session(admission: Admission) -> None:
    arena, character = await admission.instance(), await admission.character()
    _, socket = await arena.join(character)
    await _beats_late(arena, character, socket)


@verifies("AD-STALE-02", waits="5*janitor_interval + heartbeat_interval")
async def test_regular_beats_keep_a_session_over_many_janitor_runs(admission: Admission) -> None:
    arena, character = await admission.instance(), await admission.character()
    _, socket = await arena.join(character)
    await _beats_steadily(arena, character, socket)


@verifies("AD-STALE-02", part=2, waits="max(8*heartbeat_interval, stale_reclaim_grace + slack)")
async def test_a_stale_session_is_logged_once_and_a_beating_one_never(admission: Admission) -> None:
    arena, silent = await _silent(admission)
    other = await admission.instance()
    late, steady = await admission.characters(2)
    (late_session, late_socket), (steady_session, steady_socket) = await other.join(late), await other.join(steady)
    await asyncio.gather(
        *(_goes_stale(arena, character, since) for character, _, since in silent),
        _beats_late(other, late, late_socket),
        _beats_on(other, steady, steady_socket),
    )

    per_silent = 2 if admission.features.get("stale_via_grace") else 1
    for _, session, _ in silent:
        expect(_disconnects(admission, session), per_silent, why="connection.disconnected of a silent session")
    for session in (late_session, steady_session):
        expect(_disconnects(admission, session), 0, why="connection.disconnected of a session that beats")


async def _beats_on(arena: Instance, character: Character, socket: Socket) -> None:
    await _beats_steadily(arena, character, socket)
    socket.keep_beating(arena.admission.T.heartbeat_interval)


def _disconnects(admission: Admission, session: Answer) -> int:
    return len(admission.events(event="connection.disconnected", sessionId=session.session_id))


@verifies("AD-STALE-03", isolation="disruptive", waits="stale_reclaim_grace + slack")
async def test_sessions_of_crashed_and_restarted_nodes_are_cleaned(admission: Admission, T: SpecTime) -> None:
    arena, character = await admission.instance(capacity=1), await admission.character()
    _, socket = await arena.join(character)
    with admission.arranging("AD-STALE-02"):
        await socket.beat()
    for node in admission.nodes:
        await admission.kill(node)
    for node in admission.nodes:
        await admission.restart(node)

    await T.sleep_until(T.now(), admission.stale_bound(), "the janitor of the restarted node")
    expect(await arena.connect(character), success(), why="slot and character are free without anybody's help")


@verifies("AD-STALE-03", part=2, isolation="disruptive", nodes=2, waits="stale_reclaim_grace + slack")
async def test_sessions_of_a_dead_node_are_cleaned_by_another(admission: Admission, T: SpecTime) -> None:
    dead, alive, *_ = admission.nodes
    arena = await admission.instance(capacity=1, node=alive)
    character = await admission.character(node=alive)
    _, socket = await arena.join(character, node=dead)
    with admission.arranging("AD-STALE-02"):
        await socket.beat()
    await admission.kill(dead)

    await T.sleep_until(T.now(), admission.stale_bound(), "the janitor of the other node")
    expect(await arena.connect(character, node=alive), success(), why="slot and character are free")
