"""Capacity and queue cap while many connect at once (seed §11 Atomic Admission, Risks)."""

from collections.abc import Sequence
from functools import partial

from holdfast.check.finding import demand
from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.conformance.admission.client import Admission, Held, Instance
from holdfast.conformance.admission.crowds import exactly
from holdfast.conformance.admission.identities import Character
from holdfast.conformance.admission.judging import served
from holdfast.conformance.admission.wire import Answer, done

PLACES = 10
BURST = 200
AT_THE_CAP = 50
# Nodes that take turns collide only now and then: many small rounds show more than one large one.
ROUNDS = 4


@verifies("AD-ADMIT-03", busy=True, waits="5*prompt")
async def test_a_burst_gets_exactly_the_free_slots(admission: Admission, T: SpecTime) -> None:
    await _burst_on_free_slots(admission, T, admission.nodes[:1])


@verifies("AD-ADMIT-03", part=2, busy=True, waits="5*prompt")
async def test_a_burst_over_three_nodes_gets_exactly_the_free_slots(admission: Admission, T: SpecTime) -> None:
    for _ in range(ROUNDS):
        arena = await admission.instance(capacity=PLACES)
        exactly(await _connect_all(admission, arena, 2 * PLACES), {"success": PLACES, "queued": PLACES})
    await _burst_on_free_slots(admission, T, admission.nodes)


@verifies("AD-ADMIT-03", busy=True, waits="5*prompt + queue_cap / 100")
async def test_a_burst_fills_the_queue_exactly_to_its_cap(admission: Admission, T: SpecTime) -> None:
    await _burst_at_the_cap(admission, T, admission.nodes[:1])


@verifies("AD-ADMIT-03", part=2, busy=True, waits="5*prompt + queue_cap / 100")
async def test_a_burst_over_three_nodes_fills_the_queue_exactly_to_its_cap(admission: Admission, T: SpecTime) -> None:
    await _burst_at_the_cap(admission, T, admission.nodes)


@verifies("AD-ADMIT-03", busy=True, waits="5*prompt")
async def test_after_capacity_is_lowered_nobody_is_admitted_above_it(admission: Admission) -> None:
    await _lower_and_connect(admission, changed=admission.nodes[0], asked=admission.nodes[:1])


@verifies("AD-ADMIT-03", part=2, busy=True, waits="5*prompt")
async def test_capacity_lowered_through_one_node_holds_on_the_others(admission: Admission) -> None:
    first, *others = admission.nodes
    await _lower_and_connect(admission, changed=first, asked=others)


@verifies("AD-ADMIT-03", part=3, busy=True, waits="5*prompt")
async def test_capacity_lowered_amid_a_burst_holds_from_the_acknowledgement_on(
    admission: Admission, T: SpecTime
) -> None:
    keys = admission.keys()
    for _ in range(ROUNDS):
        arena = await admission.instance(capacity=PLACES)
        slots = keys.name("session_instance", arena.id)
        people = await admission.characters(AT_THE_CAP)
        burst = admission.beside(_connect_each(admission, arena, people, admission.nodes[:1], at_once=2))
        await arena.put(capacity=PLACES - 4)
        highest = limit = max(await keys.ask("SCARD", slots), PLACES - 4)
        while not burst.done():
            highest = max(highest, await keys.ask("SCARD", slots))
            await T.sleep(T.prompt / 100, "the burst")
        await burst
        highest = max(highest, await keys.ask("SCARD", slots))
        most = f"at most {limit} sessions after the acknowledgement"
        demand(highest <= limit, most, f"{highest} sessions", unsafe=True)


async def _burst_on_free_slots(admission: Admission, T: SpecTime, nodes: Sequence[str]) -> None:
    arena = await admission.instance(capacity=PLACES)
    waiting = min(BURST - PLACES, T.count("queue_cap"))
    answers = await _connect_all(admission, arena, PLACES + waiting, nodes)
    exactly(answers, {"success": PLACES, "queued": waiting})


async def _burst_at_the_cap(admission: Admission, T: SpecTime, nodes: Sequence[str]) -> None:
    arena = await admission.instance(capacity=1)
    await arena.hold()
    await arena.crowd(T.count("queue_cap") - PLACES)
    people = await admission.characters(AT_THE_CAP)
    answers = await _connect_each(admission, arena, people, nodes)
    exactly(answers, {"queued": PLACES, "QUEUE_FULL": AT_THE_CAP - PLACES})
    for _ in range(ROUNDS):
        if not await _leave_the_queue(arena, people, answers):
            return
        people = people[: 2 * PLACES]
        answers = await _connect_each(admission, arena, people, nodes)
        exactly(answers, {"queued": PLACES, "QUEUE_FULL": PLACES})


async def _leave_the_queue(arena: Instance, people: Sequence[Character], answers: Sequence[Answer]) -> bool:
    """Takes those who were queued out of the line; returns whether all went. Another row judges leaving itself."""
    queued = [character for character, answer in zip(people, answers, strict=True) if answer.outcome == "queued"]
    left = await arena.admission.parallel([lambda c=c: arena.unqueue(c) for c in queued])  # type: ignore[misc]  # lambda default
    return all(done().matches(answer) for answer in left)


async def _lower_and_connect(admission: Admission, changed: str, asked: Sequence[str]) -> None:
    """Every node that is asked afterwards has served the instance before, so it may have kept the old capacity."""
    arena = await admission.instance(capacity=PLACES, node=changed)
    inside: list[Held] = [await arena.hold(node=asked[turn % len(asked)]) for turn in range(5)]
    await arena.put(capacity=6, node=changed)

    answers = await _connect_all(admission, arena, AT_THE_CAP, asked)
    exactly(answers, {"success": 1, "queued": AT_THE_CAP - 1}, why="one slot is left of the lowered capacity")
    for held in inside:
        await served(held.socket, "a session that was inside before")


async def _connect_all(
    admission: Admission, arena: Instance, count: int, nodes: Sequence[str] | None = None
) -> list[Answer]:
    return await _connect_each(admission, arena, await admission.characters(count), nodes or admission.nodes)


async def _connect_each(
    admission: Admission, arena: Instance, people: Sequence[Character], nodes: Sequence[str], at_once: int = 64
) -> list[Answer]:
    """Connects all at once, through the nodes in turn."""
    calls = [partial(arena.connect, each, node=nodes[turn % len(nodes)]) for turn, each in enumerate(people)]
    return await admission.burst(calls, nodes=nodes, at_once=at_once)
