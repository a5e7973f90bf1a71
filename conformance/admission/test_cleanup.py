"""Cleanup removes exactly what is stale, once (seed §8 Stale Session Cleanup)."""

import asyncio
import itertools
import math
from functools import partial

from holdfast.check.finding import Inconclusive, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.admission.client import Admission, Instance
from holdfast.conformance.admission.crowds import exactly
from holdfast.conformance.admission.identities import Character
from holdfast.conformance.admission.judging import none_of
from holdfast.conformance.admission.wire import Answer, place, refused
from holdfast.conformance.shared.wire import moment

ROUNDS = 200
STALE = 20


@verifies("AD-STALE-04", waits="2*stale_reclaim + janitor_check + 8*slack")
async def test_a_session_resumed_at_the_moment_of_expiry_survives(admission: Admission, T: SpecTime) -> None:
    """Half of the rounds race the end of a grace, the others the cleanup that finds a silent session."""
    arena = await admission.instance(room=ROUNDS)
    people = await admission.characters(ROUNDS)
    start, each = T.now(), range(ROUNDS // 2)
    grace = [_resume_at_end_of_grace(arena, people[n], start, n / len(each)) for n in each]
    survived = await asyncio.gather(_resume_when_stale(arena, people[len(each) :]), *grace)
    if not any(survived):
        raise Inconclusive("no reconnect succeeded, so nothing could be removed by mistake")


async def _resume_at_end_of_grace(arena: Instance, character: Character, start: Moment, share: float) -> bool:
    """Drops one after the other; each reconnect comes a little later in its own grace than the one before."""
    T = arena.admission.T
    await T.sleep_until(start, share * ROUNDS / 2 * T.slack / 8, "the rounds before")
    session, socket = await arena.join(character)
    gone = await socket.drop()
    await T.sleep_until(gone, T.grace + (share - 0.5) * T.slack / 2, "the end of the grace")
    return await _survives(arena, character, session.token)


async def _resume_when_stale(arena: Instance, people: list[Character]) -> bool:
    """One cleanup shows when the next ones are due; the sessions go stale right before one of them.

    The reconnects crowd around that moment, since a janitor that lists first and removes later does not take long.
    Most come before it: what shows of a run is its end.
    """
    admission, T = arena.admission, arena.admission.T
    seen, now = await _janitor_run(admission), T.now()
    runs = math.floor((now.hi + T.stale_limit + 4 * T.slack - seen.lo) / T.janitor_interval) + 1
    due = Moment(seen.lo + runs * T.janitor_interval, seen.hi + runs * T.janitor_interval)
    await T.sleep_until(due, -T.stale_limit - 4 * T.slack, "the sessions to be stale when the janitor comes")
    sessions = await admission.parallel([lambda c=c: arena.admit(c) for c in people])  # type: ignore[misc]  # mypy can't see the bound default

    async def resume(number: int) -> bool:
        await T.sleep_until(due, (4 * number / len(people) - 3) * T.slack, "the janitor")
        return await _survives(arena, people[number], sessions[number].token)

    return any(await asyncio.gather(*(resume(number) for number in range(len(people)))))


async def _janitor_run(admission: Admission) -> Moment:
    """Returns when the cleanup freed the slot of a session that had never shown a sign of life."""
    arena = await admission.instance(capacity=1)
    await arena.fill(1)
    [waiting] = await arena.line_up(1)
    with admission.arranging("AD-STALE-02"):
        _, seen = await arena.admitted(waiting, within=admission.stale_bound() + admission.T.promote_never)
    return seen


async def _survives(arena: Instance, character: Character, token: str) -> bool:
    """Returns whether the reconnect succeeded. Raises Finding if a resumed session is gone later."""
    T = arena.admission.T
    answer = await arena.connect(character, token=token)
    if answer.outcome != "success":
        return False
    await T.sleep_until(moment(answer), T.janitor_check, "a whole janitor interval")
    expect(await arena.connect(character), refused("ALREADY_IN_SESSION"), why="it was resumed before it was removed")
    return True


@verifies("AD-STALE-04", waits="3*janitor_interval + slack")
async def test_waiting_characters_are_no_orphans(admission: Admission, T: SpecTime) -> None:
    arena = await admission.instance(capacity=1)
    await arena.hold()
    line = await arena.line_up(5)
    start = T.now()
    for run in (1, 2, 3):
        await T.sleep_until(start, run * T.janitor_interval + T.slack, f"janitor run {run}")
        for position, character in enumerate(line):
            expect(await arena.status(character), place(position, 5), why="its place in line")


async def _go_stale(admission: Admission, count: int, capacity: int) -> tuple[Instance, list[Answer]]:
    """Makes sessions through all nodes that never show a sign of life, and waits until they must be gone."""
    arena = await admission.instance(capacity)
    people = zip(await admission.characters(count), itertools.cycle(admission.nodes), strict=False)
    sessions = await admission.parallel([lambda c=c, n=n: arena.admit(c, node=n) for c, n in people])  # type: ignore[misc]  # mypy can't see the bound defaults
    await admission.T.sleep(admission.stale_bound(), "the janitors")
    return arena, sessions


@verifies("AD-STALE-04", part=2, waits="stale_reclaim_grace + slack")
async def test_several_janitors_free_each_slot_once(admission: Admission) -> None:
    arena, _ = await _go_stale(admission, STALE, capacity=STALE)
    newcomers = zip(await admission.characters(2 * STALE), itertools.cycle(admission.nodes), strict=False)
    calls = [partial(arena.connect, each, node=node) for each, node in newcomers]
    answers = await admission.burst(calls, nodes=admission.nodes)
    exactly(answers, {"success": STALE, "queued": STALE}, "after all slots were freed")


@verifies("AD-STALE-04", part=3, waits="stale_reclaim_grace + slack")
async def test_each_cleaned_session_is_logged_once(admission: Admission) -> None:
    arena, sessions = await _go_stale(admission, STALE, capacity=STALE)
    per_session = 2 if admission.features.get("stale_via_grace") else 1
    logged = [
        event.get("sessionId") for event in admission.events(event="connection.disconnected", instanceId=arena.id)
    ]

    counts = {session.session_id: logged.count(session.session_id) for session in sessions}
    odd = [f"{count} of session {session}" for session, count in counts.items() if count != per_session]
    none_of(odd, f"other number of connection.disconnected than {per_session}")


@verifies("AD-STALE-04", part=4, waits="stale_reclaim_grace + slack")
async def test_the_slots_fall_by_exactly_the_stale_sessions(admission: Admission, T: SpecTime) -> None:
    keys = admission.keys()
    arena = await admission.instance(capacity=STALE)
    living = [await arena.hold() for _ in range(3)]
    silent = await arena.fill(5)
    with admission.arranging("AD-ADMIT-02"):
        taken = await keys.ask("SCARD", keys.name("session_instance", arena.id))
        expect(taken, len(living) + len(silent), why="sessions that hold a slot before")
    await T.sleep(admission.stale_bound(), "the janitor")

    members = await keys.ask("SMEMBERS", keys.name("session_instance", arena.id))
    expect(sorted(members), sorted(held.answer.session_id for held in living), why="sessions that hold a slot")
