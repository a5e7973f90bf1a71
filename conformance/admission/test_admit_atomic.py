"""All of an admission or nothing (seed §11 Atomic Admission): around refusals, and through kills."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from holdfast.check.finding import Finding, Inconclusive, demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.conformance.admission.client import Admission, Instance
from holdfast.conformance.admission.identities import Character
from holdfast.conformance.admission.keys import Keys
from holdfast.conformance.admission.values import UUID
from holdfast.conformance.admission.wire import refused
from holdfast.conformance.shared.monitor import atomic_groups

STATE = ("session:*", "queue:*")
KILLS = 6
# Sent all at once, so that a kill after the first answer finds many unfinished, however slow the machine is.
PER_KILL = 40


@verifies("AD-ADMIT-04", isolation="quiet")
async def test_a_refusal_leaves_no_trace_of_a_session_or_place(admission: Admission, T: SpecTime) -> None:
    free, full, keys = await admission.instance(), await admission.instance(capacity=1), admission.keys()
    outdated, suspended, last = await admission.characters(3)
    await admission.suspend(suspended)
    await _refuse_both(keys, free, outdated, suspended)
    # Heartbeats would change the records, so none are sent; the session must be read before it goes stale.
    filled = T.now()
    await full.fill(1)
    await full.line_up(1)
    try:
        before = await _refuse_both(keys, full, outdated, suspended)
    except Finding as finding:
        if T.now().hi - filled.lo > T.stale_limit:
            raise Inconclusive("the session inside may have gone stale before all was seen") from finding
        raise
    await free.admit(last)
    with admission.arranging("AD-STATE-01"):
        seen = await keys.snapshot(*STATE) != before
        demand(seen, "records of sessions in Redis", "none, not even of an admission", "control")


async def _refuse_both(keys: Keys, arena: Instance, outdated: Character, suspended: Character) -> dict[str, Any]:
    before = await keys.snapshot(*STATE)
    with arena.admission.arranging("AD-VER-01"):
        expect(await arena.fail(outdated), refused("VERSION_MISMATCH"))
    with arena.admission.arranging("AD-ADMIT-07"):
        expect(await arena.connect(suspended), refused("CHARACTER_SUSPENDED"))
    _identical(before, await keys.snapshot(*STATE))
    return before


def _identical(before: dict[str, Any], after: dict[str, Any]) -> None:
    moved = sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
    seen = "; ".join(f"{key}: {before.get(key, 'nothing')} became {after.get(key, 'nothing')}" for key in moved)
    demand(not moved, "session:* and queue:* as before the refusal", seen)


@verifies("AD-ADMIT-04", part=2, isolation="quiet")
async def test_record_marker_and_count_change_in_one_step(admission: Admission) -> None:
    """Kills find gaps by chance; the recorded commands show them all: a node may be killed between any two steps."""
    arena, character, keys = await admission.instance(), await admission.character(), admission.keys()
    async with keys.recording() as commands:
        session = (await arena.admit(character)).session_id
    writes = await keys.write_commands()
    places = {
        keys.name("session_data", session): "record",
        keys.name("session_char", character.id): "marker",
        keys.name("session_instance", arena.id): "count",
    }
    steps = [
        {places[word] for command in group if command.name in writes for word in command.words if word in places}
        for group in atomic_groups(commands)
    ]
    seen = "; then ".join(" and ".join(sorted(step)) for step in steps if step)
    demand(set(places.values()) in steps, "record, marker and count written in one step", seen or "no write of them")


@verifies("AD-ADMIT-04", part=2, isolation="disruptive", busy=True, waits="recovery + 10*prompt")
async def test_a_node_killed_under_load_leaves_whole_sessions_or_none(admission: Admission, T: SpecTime) -> None:
    arena, keys = await admission.instance(room=KILLS * PER_KILL), admission.keys()
    victim = admission.nodes[0]
    people: list[Character] = []
    for _ in range(KILLS):
        fresh, before = await admission.characters(PER_KILL), await _sessions(keys, arena)
        people += fresh
        load = admission.beside(_connect_all(admission, arena, fresh))
        while not load.done() and await _sessions(keys, arena) == before:
            await T.sleep(T.prompt / 1000, "the first admission")
        await admission.kill(victim)
        admission.context.transcript.note(f"killed when {await load} of {PER_KILL} attempts were answered")
        await _whole_or_none(keys, arena, people)
        await admission.restart(victim)
    await _whole_or_none(keys, arena, people)


async def _connect_all(admission: Admission, arena: Instance, people: Sequence[Character]) -> int:
    """Connects all at once; returns how many were answered before the node was gone."""
    answers = await admission.burst([partial(arena.connect, each) for each in people], at_once=PER_KILL)
    return sum(answer.answered for answer in answers)


async def _sessions(keys: Keys, arena: Instance) -> int:
    return int(await keys.ask("SCARD", keys.name("session_instance", arena.id)))


async def _whole_or_none(keys: Keys, arena: Instance, people: Sequence[Character]) -> None:
    """Reads the instance's session ids, the characters' markers and the records in one transaction."""
    slots = ("SMEMBERS", keys.name("session_instance", arena.id))
    markers = ("MGET", *(keys.name("session_char", character.id) for character in people))
    members, marked = await keys.together(slots, markers)
    known = sorted({*members, *filter(None, marked), *await _recorded(keys)})
    members, marked, *found = await keys.together(
        slots, markers, *(("EXISTS", keys.name("session_data", session)) for session in known)
    )
    if not members <= set(known):
        raise Inconclusive("sessions came after the last attempt had ended")
    recorded = {session for session, there in zip(known, found, strict=True) if there}
    traces = (set(members), {session for session in marked if session}, recorded)
    half = set.union(*traces) - set.intersection(*traces)
    seen = "; ".join(_traces(session, *traces) for session in sorted(half)[:5])
    demand(not half, "id in the instance's set, character's marker and record, or none of them", seen)


async def _recorded(keys: Keys) -> list[str]:
    """Returns the ids of all session records; the check has a Redis of its own."""
    (root,) = keys.roots("session_data")
    names = [str(name) async for name in keys.redis.scan_iter(match=f"{root}*", count=1000)]
    return [name.removeprefix(root) for name in names if UUID.fullmatch(name.removeprefix(root))]


def _traces(session: str, members: set[str], marked: set[str], recorded: set[str]) -> str:
    places = {"set": session in members, "marker": session in marked, "record": session in recorded}
    return f"{session}: " + ", ".join(f"{name} {'there' if there else 'missing'}" for name, there in places.items())
