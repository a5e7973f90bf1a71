"""Drain mode (seed Glossary Additions): only promotions and reconnects, on one instance, at once, everywhere."""

import asyncio
from functools import partial

from holdfast.check.finding import demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.conformance.admission.client import PARALLEL, Admission, Held, Instance
from holdfast.conformance.admission.crowds import settled
from holdfast.conformance.admission.identities import Character
from holdfast.conformance.admission.judging import none_of
from holdfast.conformance.admission.wire import place, queued, refused, success
from holdfast.conformance.shared.wire import status

STAMPEDE = 200
# When drain is switched on, in round trips after the attempts were sent: in each half of the first few.
MOMENTS = (0.25, 0.75, 1.25, 1.75, 2.25)


@verifies("AD-DRAIN-01")
async def test_a_draining_instance_refuses_newcomers_free_or_full(admission: Admission) -> None:
    free, full, other = [await admission.instance(capacity=1) for _ in range(3)]
    await full.hold()
    waiting, newcomer, late = await admission.characters(3)
    await full.enqueue(waiting)
    await free.drain()
    await full.drain()

    expect(await free.connect(newcomer), refused("DRAIN_MODE"), why="a free slot is none for newcomers")
    expect(await full.connect(late), refused("DRAIN_MODE"), why="the queue takes no newcomers")
    expect(await full.status(waiting), place(0, 1), why="the draining queue")
    expect(await full.status(late), status(404), why="the refused newcomer does not wait")
    with admission.arranging("AD-DRAIN-03"):
        expect(await other.connect(newcomer), success(), why="control: an instance that is not draining takes it")


@verifies("AD-DRAIN-02", waits="token_ttl/2 + 3*promote_within + wait_tolerance")
async def test_a_draining_instance_serves_those_already_there(admission: Admission, T: SpecTime) -> None:
    arena = await admission.instance(capacity=6)
    *playing, losing = [await arena.hold() for _ in range(6)]
    line = await arena.line_up(3)
    gone = await admission.lose(losing.socket)
    draining = T.now()
    await arena.drain()

    for position, character in enumerate(line):
        expect(await arena.status(character), place(position), why="a waiting client can still poll")
        expect(await arena.connect(character), queued(position=position), why="a repeated attempt returns its place")
    await T.sleep_until(draining, T.scaled(10), "the sockets to be left alone for a while")
    for held in playing:
        await held.socket.beat("a running session is left alone")
    await T.sleep_until(gone, T.token_ttl / 2, "half of the token's life")
    answer = await arena.reclaim(losing.character, losing.answer.token, gone=gone)
    expect(answer, success(losing.answer.session_id), why="a dropped session can be resumed")
    for first in range(len(line)):
        await _release(arena, playing[first], line[first:])


async def _release(arena: Instance, leaving: Held, line: list[Character]) -> None:
    """Frees one slot: the first in line gets it, and the others move up."""
    T = arena.admission.T
    freed = T.now()
    await arena.release(leaving.answer.session_id, leaving.character)
    _, seen = await arena.admitted(line[0], within=T.promote_never, since=freed)
    T.at_most("promote_within", since=freed, seen=seen, what="the promotion")
    for position, waiting in enumerate(line[1:]):
        expect(await arena.status(waiting), place(position), why="the others move up in their order")


@verifies("AD-DRAIN-03", isolation="quiet")
async def test_drain_concerns_one_instance_and_can_be_switched_off(admission: Admission) -> None:
    """Quiet: a target with one flag for all instances might be saved by another check that switches it off."""
    draining, other = await admission.instance(capacity=1), await admission.instance(capacity=1)
    first, second, third = await admission.characters(3)
    await draining.drain()
    expect(await draining.connect(first), refused("DRAIN_MODE"), why="right after the acknowledgement")
    expect(await other.connect(second), success(), why="another instance is not draining")
    await draining.drain(on=False)

    expect(await draining.connect(first), success(), why="after switching off a free slot is given")
    await draining.queues(third, position=0, depth=1, why="after switching off a full one queues")


@verifies("AD-DRAIN-03")
async def test_no_newcomer_of_a_stampede_joins_after_the_acknowledgement(admission: Admission) -> None:
    arena = await admission.instance(capacity=1)
    await arena.hold()
    waiting, *crowd = await admission.characters(1 + STAMPEDE)
    await arena.enqueue(waiting)
    await admission.warm(admission.nodes[:1], PARALLEL)
    stampede = admission.beside(admission.parallel([partial(arena.connect, each) for each in crowd]))
    acknowledged = await arena.drain()
    depth = (await arena.status(waiting)).depth
    answers = await stampede

    expect((await arena.status(waiting)).depth, depth, why="depth at the end, against that at the acknowledgement")
    for answer in settled(answers):
        expect(answer, queued(), refused("DRAIN_MODE"), refused("QUEUE_FULL"))
        if answer.sent > acknowledged.received:
            expect(answer, refused("DRAIN_MODE"), why="sent after the acknowledgement")


@verifies("AD-DRAIN-03", part=2)
async def test_drain_holds_on_every_node_once_acknowledged(admission: Admission) -> None:
    arena, character = await admission.instance(capacity=1), await admission.character()
    a, b, *_ = admission.nodes
    await arena.drain(node=a)
    expect(await arena.connect(character, node=b), refused("DRAIN_MODE"), why="switched on through another node")
    await arena.drain(on=False, node=b)
    expect(await arena.connect(character, node=a), success(), why="switched off through another node")


@verifies("AD-DRAIN-03", part=3, isolation="quiet", nodes=2, waits="5*inflight_hop + attempt_deadline")
async def test_attempts_in_flight_do_not_join_after_the_acknowledgement(admission: Admission, T: SpecTime) -> None:
    slow = admission.nodes[0]
    arenas = [await _full(admission) for _ in MOMENTS]
    crowds = [await admission.characters(3) for _ in MOMENTS]
    await admission.deployment.link(slow).delay(T.inflight_hop / 2)
    await asyncio.gather(
        *(
            _drain_amid(arena, waiting, crowd, after * T.inflight_hop)
            for (arena, waiting), crowd, after in zip(arenas, crowds, MOMENTS, strict=True)
        )
    )


async def _full(admission: Admission) -> tuple[Instance, Character]:
    """Returns a full instance, and a waiting character whose polls show the depth."""
    arena = await admission.instance(capacity=1)
    await arena.hold()
    [waiting] = await arena.line_up(1)
    return arena, waiting


async def _drain_amid(arena: Instance, waiting: Character, crowd: list[Character], after: float) -> None:
    """Lets newcomers connect through the slow node while drain is switched on through the other."""
    T = arena.admission.T
    slow, swift, *_ = arena.admission.nodes
    sent = T.now()
    attempts = asyncio.gather(*(arena.connect(character, node=slow) for character in crowd))
    await T.sleep_until(sent, after, "the attempts to be in flight")
    await arena.drain(node=swift)
    depth = (await arena.status(waiting, node=swift)).depth or 0
    answers = await attempts
    now = (await arena.status(waiting, node=swift)).depth
    shown = ", ".join(answer.describe() for answer in answers)
    same, seen = f"depth {depth}, as at the acknowledgement", f"depth {now}; answers to the newcomers: {shown}"
    demand(now is not None and now <= depth, same, seen)


@verifies("AD-DRAIN-04")
async def test_a_draining_instance_offers_and_makes_no_replacement(admission: Admission) -> None:
    arena, character = await admission.instance(), await admission.character()
    _, socket = await arena.join(character)
    offer = await arena.offer(character)
    await arena.drain()

    answer = await arena.connect(character)
    expect(answer, refused("ALREADY_IN_SESSION"))
    none_of(answer.given("replacementToken"), "replacementToken while draining")
    expect(await arena.connect(character, replace=offer), refused("DRAIN_MODE"), why="the offer of before the drain")
    await socket.beat("the running session")
