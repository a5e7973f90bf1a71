"""Promotion pops atomically, one per slot (seed §10, §11): many leaves at once, several promoters, and kills."""

import asyncio
from collections.abc import Sequence
from functools import partial

from holdfast.check.finding import Finding, Unsafe, demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.conformance.admission.client import Admission, Instance
from holdfast.conformance.admission.identities import Character
from holdfast.conformance.admission.judging import none_of
from holdfast.conformance.admission.values import same_id
from holdfast.conformance.admission.wire import Answer, place

PLACES, LINE = 5, 100
KILLS = 10


@verifies("AD-QUEUE-11", busy=True, waits="promote_within + 8*prompt")
async def test_as_many_are_promoted_as_slots_are_free(admission: Admission, T: SpecTime) -> None:
    await _promote_in_rounds(admission, T, admission.nodes[:1])


@verifies("AD-QUEUE-11", part=2, busy=True, waits="promote_within + 8*prompt")
async def test_promoters_on_three_nodes_never_take_the_same_entry(admission: Admission, T: SpecTime) -> None:
    await _promote_in_rounds(admission, T, admission.nodes)


@verifies("AD-QUEUE-11", part=3, busy=True, waits="promote_within + 8*prompt")
async def test_sessions_never_exceed_capacity_while_promotions_run(admission: Admission, T: SpecTime) -> None:
    arena, keys = await admission.instance(capacity=PLACES), admission.keys()
    rounds = admission.beside(_promote_in_rounds(admission, T, admission.nodes[:1], arena, LINE // 2))
    highest = 0
    while not rounds.done():
        highest = max(highest, await keys.ask("SCARD", keys.name("session_instance", arena.id)))
        await T.sleep(T.prompt / 100, "the promotions")
    await rounds
    if highest > PLACES:
        raise Unsafe([f"at most {PLACES} sessions at any moment"], f"{highest} sessions")
    with admission.arranging("AD-ADMIT-02"):
        expect(highest, PLACES, why="control: most sessions at any moment, in session:instance")


@verifies("AD-QUEUE-11", part=4, isolation="quiet", busy=True, waits="promote_within + 8*prompt")
async def test_each_promotion_is_announced_once(admission: Admission, T: SpecTime) -> None:
    arena = await admission.instance(capacity=PLACES)
    line = await _promote_in_rounds(admission, T, admission.nodes[:1], arena, LINE // 2)
    ids = {character.id for character in line}

    async def announced() -> list[str] | None:
        events = admission.events(event="connection.admitted", instanceId=arena.id)
        announced_ids = [str(event["characterId"]) for event in events if event.get("characterId") in ids]
        return announced_ids if ids <= set(announced_ids) else None

    with admission.arranging("AD-OBS-03"):
        promoted, _ = await T.until(announced, give_up=T.prompt_never, what="connection.admitted of everyone in line")
    twice = sorted({each for each in promoted if promoted.count(each) > 1})
    none_of(twice, "character with a second connection.admitted")


async def _promote_in_rounds(
    admission: Admission, T: SpecTime, nodes: Sequence[str], arena: Instance | None = None, length: int = LINE
) -> list[Character]:
    """All inside leave at once, through the nodes in turn; each round exactly as many of the line are promoted."""
    place = arena or await admission.instance(capacity=PLACES)
    inside = [(held.character, held.answer.session_id) for held in [await place.hold() for _ in range(PLACES)]]
    line = await _line(place, length)
    for start in range(0, length, PLACES):
        await _leave_all(place, inside, nodes)
        promoted = line[start : start + PLACES]
        seen = await asyncio.gather(*(place.admitted(character, within=T.promote_never) for character in promoted))
        inside = [(character, answer.session_id) for character, (answer, _) in zip(promoted, seen, strict=True)]
        if (apart := len({session for _, session in inside})) < PLACES:
            raise Unsafe([f"{PLACES} sessions for {PLACES} promoted"], f"{apart} session ids among them")
        await _one_session_each(place, inside, nodes)
        await _the_rest_moved_up(place, line[start + PLACES :])
    return line


async def _leave_all(arena: Instance, inside: Sequence[tuple[Character, str]], nodes: Sequence[str]) -> list[Answer]:
    """Leaves all at once over connections that are open already."""
    turns = [(character, session, nodes[turn % len(nodes)]) for turn, (character, session) in enumerate(inside)]
    calls = [partial(arena.leave, session, character, node=node) for character, session, node in turns]
    return await arena.admission.burst(calls, nodes=nodes)


async def _leave_again(arena: Instance, inside: Sequence[tuple[Character, str]]) -> None:
    """Leaves once more, for those whose leave the kill cut off; a node that has just started may ask for patience."""
    admission = arena.admission
    leaves = [partial(arena.leave, session, character) for character, session in inside]
    await admission.parallel([partial(admission.patiently, leave) for leave in leaves])


async def _line(arena: Instance, length: int) -> list[Character]:
    """Enqueues fresh characters at once; returns them in the order of the places they were given."""
    people = await arena.admission.characters(length)
    answers = await arena.admission.parallel([lambda c=c: arena.enqueue(c) for c in people], at_once=8)  # type: ignore[misc]  # lambda default
    places = {answer.position: character for answer, character in zip(answers, people, strict=True)}
    with arena.admission.arranging("AD-QUEUE-02"):
        none_of([place for place in range(length) if place not in places], "place of the line left out")
    return [places[place] for place in range(length)]


async def _one_session_each(arena: Instance, inside: Sequence[tuple[Character, str]], nodes: Sequence[str]) -> None:
    """Raises Finding unless another node shows the same session that the first poll showed."""
    others = [nodes[(turn + 1) % len(nodes)] for turn in range(len(inside))]
    polls = await asyncio.gather(*(arena.status(c, node=node) for (c, _), node in zip(inside, others, strict=True)))
    for (_, session), poll in zip(inside, polls, strict=True):
        same = poll.state == "admitted" and same_id(poll.session_id, session)
        demand(same, f"admitted, session {session}", poll.describe(), "asked once more")


async def _the_rest_moved_up(arena: Instance, rest: Sequence[Character]) -> None:
    """Raises Finding unless the first few and the last of the line are where they should be."""
    asked = sorted({*range(min(len(rest), PLACES + 1)), *range(len(rest))[-1:]})
    polls = await asyncio.gather(*(arena.status(rest[position]) for position in asked))
    for position, poll in zip(asked, polls, strict=True):
        expect(poll, place(position), why="the others in line")


@verifies("AD-QUEUE-11", part=5, isolation="disruptive", nodes=1, busy=True, waits="recovery + 15*prompt")
async def test_a_node_killed_in_promotions_loses_nobody(admission: Admission, T: SpecTime) -> None:
    arena = await admission.instance(capacity=PLACES)
    victim = admission.nodes[0]
    inside = [(held.character, held.answer.session_id) for held in [await arena.hold() for _ in range(PLACES)]]
    line = await _line(arena, LINE)
    for _ in range(KILLS):
        leaves = admission.beside(_leave_all(arena, inside, admission.nodes))
        await T.sleep(admission.context.random.random() * T.redis_hop, "the leaves to be in flight")
        await admission.kill(victim)
        await leaves
        await admission.restart(victim)
        await _leave_again(arena, inside)
        inside = await _moved_in(arena, line, T)
        line = [character for character in line if character not in {mover for mover, _ in inside}]
    await _the_rest_moved_up(arena, line)


async def _moved_in(arena: Instance, line: Sequence[Character], T: SpecTime) -> list[tuple[Character, str]]:
    """Waits until all slots are taken; returns who of the line is in session. Raises Finding if one is lost."""
    near = line[: 3 * PLACES]

    async def look() -> list[tuple[Character, str]] | None:
        polls = await asyncio.gather(*(arena.status(character) for character in near))
        if lost := [c.id for c, poll in zip(near, polls, strict=True) if poll.status == 404]:
            raise Finding(["everyone of the line waiting or in session"], f"neither: {', '.join(lost)}")
        pairs = zip(near, polls, strict=True)
        inside = [(c, poll.session_id) for c, poll in pairs if poll.state == "admitted"]
        return inside if len(inside) >= PLACES else None

    inside, _ = await T.until(look, give_up=T.promote_never, what="the promotions after the restart")
    if len(inside) > PLACES:
        raise Unsafe([f"{PLACES} characters in session after the restart"], f"{len(inside)}")
    return inside
