"""The waiting line (seed §10 Queue Implementation Details): rank, order of arrival, leaving, and nobody overtakes."""

from collections.abc import Sequence
from functools import partial

from holdfast.check.finding import demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.conformance.admission.client import Admission, Instance
from holdfast.conformance.admission.identities import Character
from holdfast.conformance.admission.judging import none_of
from holdfast.conformance.admission.wire import Answer, done, place, queued
from holdfast.conformance.shared.wire import status

BURST = 200
# A hundred rounds of one race, run side by side on several instances.
LANES, ROUNDS = 5, 20
RETRIES = 2


@verifies("AD-QUEUE-01")
async def test_positions_count_from_zero_and_close_up_when_the_first_is_gone(admission: Admission) -> None:
    arena = await admission.instance(capacity=1)
    inside = await arena.hold()
    line = await admission.characters(5)
    for position, character in enumerate(line):
        await arena.queues(character, position=position)
    await _stand_in_order(arena, line)

    await arena.withdraw(line[0])
    await _stand_in_order(arena, line[1:])
    await arena.release(inside.answer.session_id, inside.character)
    await arena.promoted(line[1])
    await _stand_in_order(arena, line[2:])


@verifies("AD-QUEUE-01", part=2)
async def test_the_queue_is_a_sorted_set_and_positions_are_its_ranks(admission: Admission) -> None:
    arena, keys = await admission.instance(capacity=1), admission.keys()
    await arena.hold()
    line = await arena.line_up(5)
    name = keys.name("queue_pending", arena.id)

    expect(await keys.ask("TYPE", name), "zset")
    members = await keys.ask("ZRANGE", name, 0, -1)
    expect(", ".join(members), ", ".join(character.id for character in line), why="members by score")
    scores = [float(await keys.ask("ZSCORE", name, member)) for member in members]
    demand(scores == sorted(set(scores)), "scores that rise", ", ".join(f"{score:.0f}" for score in scores))
    for character in line:
        rank = await keys.ask("ZRANK", name, character.id)
        expect(await arena.status(character), place(rank), why="position against ZRANK")


@verifies("AD-QUEUE-02")
async def test_each_arrival_stands_behind_the_one_before(admission: Admission) -> None:
    """Characters arrive in reverse order of their creation, so that the two orders differ."""
    arena = await admission.instance(capacity=1)
    await arena.hold()
    made = [await admission.character() for _ in range(20)]
    line = made[::-1]
    for position, character in enumerate(line):
        await arena.queues(character, position=position)
    await _stand_in_order(arena, line)


@verifies("AD-QUEUE-02")
async def test_places_given_in_one_instant_stay_as_given(admission: Admission, T: SpecTime) -> None:
    arena = await admission.instance(capacity=1)
    await arena.hold()
    crowd = await admission.characters(min(BURST, T.count("queue_cap")))
    answers = await admission.burst([partial(arena.connect, each) for each in crowd])

    with admission.arranging("AD-POLL-01"):
        for answer in answers:
            expect(answer, queued())
    given = {answer.position: character for answer, character in zip(answers, crowd, strict=True)}
    none_of([position for position in range(len(crowd)) if position not in given], "place of the line left out")
    await _stand_in_order(arena, [given[position] for position in range(len(crowd))])


@verifies("AD-QUEUE-05")
async def test_asking_again_neither_adds_an_entry_nor_moves_it(admission: Admission) -> None:
    arena = await admission.instance(capacity=1)
    await arena.hold()
    line = await arena.line_up(3)

    for position in (0, 1, 0):
        answer = await arena.connect(line[position])
        expect(answer, queued(position=position))
        if answer.depth is not None:
            expect(answer.depth, 3, why="depth after asking again")
        await _stand_in_order(arena, line)


@verifies("AD-QUEUE-08")
async def test_leaving_the_queue_closes_the_gap_and_leaves_no_session(admission: Admission) -> None:
    arena = await admission.instance(capacity=1)
    inside = await arena.hold()
    first, leaver, last = await arena.line_up(3)

    expect(await arena.unqueue(leaver), done())
    expect(await arena.status(last), place(1), why="the one behind moves up")
    expect(await arena.status(leaver), status(404))

    await arena.release(inside.answer.session_id, inside.character)
    promoted, _ = await arena.promoted(first)
    await arena.release(promoted.session_id, first)
    await arena.promoted(last)
    expect(await arena.status(leaver), status(404), why="who left the queue has no session either")


@verifies("AD-QUEUE-06", busy=True, waits="promote_within + 5*prompt")
async def test_neither_newcomer_nor_retry_takes_the_slot_of_the_first_in_line(admission: Admission) -> None:
    await _many_races(admission, admission.nodes[:1] * 3)


@verifies("AD-QUEUE-06", part=2, busy=True, waits="promote_within + 5*prompt")
async def test_nobody_overtakes_through_another_node(admission: Admission) -> None:
    a, b, *rest = admission.nodes
    await _many_races(admission, [a, b, rest[0] if rest else a])


async def _many_races(admission: Admission, nodes: Sequence[str]) -> None:
    await admission.parallel([lambda: _races(admission, nodes)] * LANES)


async def _races(admission: Admission, nodes: Sequence[str]) -> None:
    """Each round the one inside leaves; while the next is promoted, the one behind and a newcomer try to overtake."""
    arena = await admission.instance(capacity=1)
    inside = await admission.character()
    session = (await arena.admit(inside)).session_id
    first, second = await arena.line_up(2)
    for _ in range(ROUNDS):
        newcomer = await admission.character()
        session = await _race(arena, nodes, (inside, session), first, second, newcomer)
        inside, first, second = first, second, newcomer


async def _race(
    arena: Instance,
    nodes: Sequence[str],
    leaving: tuple[Character, str],
    first: Character,
    second: Character,
    newcomer: Character,
) -> str:
    for_leaver, for_newcomer, for_second = nodes
    calls = [
        partial(arena.leave, leaving[1], leaving[0], node=for_leaver),
        partial(arena.connect, newcomer, node=for_newcomer),
        *[partial(arena.connect, second, node=for_second)] * RETRIES,
    ]
    left, *answers = await arena.admission.burst(calls, nodes=sorted(set(nodes)))
    with arena.admission.arranging("AD-RECON-09"):
        expect(left, done(), why="a leave")
    for answer in answers:
        expect(answer, queued(), why="another one is before it in line")
    promoted, _ = await arena.promoted(first)
    expect(await arena.status(second), place(0), why="the next in line")
    return promoted.session_id


async def _stand_in_order(arena: Instance, line: Sequence[Character]) -> None:
    """Raises Finding unless everyone polls the place of the list, and the depth is the length of the list."""
    polls: list[Answer] = await arena.admission.parallel([lambda c=c: arena.status(c) for c in line])  # type: ignore[misc]  # lambda default
    for position, poll in enumerate(polls):
        expect(poll, place(position, len(line)), why=f"polled along a line of {len(line)}")
