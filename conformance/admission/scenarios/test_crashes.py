"""Nodes and clients that fail (C9 … C12): killed, skewed, cut off. Sessions resume, the line stays in order."""

import asyncio
from functools import partial

from holdfast.check.faults import Faults
from holdfast.check.finding import Finding, demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.admission.client import Admission, Held, Instance
from holdfast.conformance.admission.identities import Character
from holdfast.conformance.admission.wire import Answer, place, queued, success
from holdfast.conformance.shared.wire import moment

SOCKETS, ARRIVING = 50, 16
KILLS, PLACES, LINE = 10, 3, 40
# How far clocks are off, in the spec's seconds.
SKEW = 300
ROUNDS, WATCHED = 5, 10


@verifies(
    "AD-RECON-10", part=2, isolation="disruptive", nodes=2, busy=True, waits="recovery_never + stale_reclaim_grace"
)
async def test_c09_node_crash(admission: Admission, faults: Faults, T: SpecTime) -> None:
    """Fifty sockets on a node that is killed: all with a token resume through the other, the rest are cleaned up."""
    a, b = admission.nodes[:2]
    arena, people = await admission.instance(room=SOCKETS, node=b), await admission.characters(SOCKETS)
    held = await admission.parallel([partial(arena.hold, each, node=a) for each in people], at_once=ARRIVING)
    forgetful, returning = held[0], held[1:]
    async with faults.during("kill", a) as window:
        killed = Moment(window.asked, window.in_force)
        seen = await admission.parallel([partial(_resume, arena, T, each, b, killed) for each in returning])
        samples = [back.hi - killed.lo for back in seen]
        slow = [sample for sample in samples if sample > T.token_ttl]
        least = T.share("reconnect_success_min")
        enough = len(slow) <= (1 - least) * len(samples)
        demand(enough, f"{least:.0%} back within the life of a token", f"{len(slow)} of {len(samples)} later")
        T.at_most("recovery", since=killed, seen=sorted(seen, key=lambda back: back.hi)[int(0.95 * len(seen))])
        await T.sleep_until(killed, admission.stale_bound(), "the session of the one that does not come back")
        answer = await arena.connect(forgetful.character, node=b)
        with admission.arranging("AD-STALE-03"):
            expect(answer, success(), why="a session whose client never came back is cleaned")


async def _resume(arena: Instance, T: SpecTime, held: Held, node: str, since: Moment) -> Moment:
    async def resumed() -> Answer | None:
        answer = await arena.connect(held.character, token=held.answer.token, node=node)
        return answer if answer.outcome == "success" else None

    answer, seen = await T.until(
        resumed, give_up=T.recovery_never, since=since, every=T.recovery / 5, what="the session through another node"
    )
    expect(answer, success(held.answer.session_id))
    socket = await arena.attach(held.answer.session_id, held.character, node=node)
    socket.keep_beating(T.heartbeat_interval / 3)
    return seen


@verifies("AD-QUEUE-11", part=5, isolation="disruptive", nodes=1, busy=True, waits="3*recovery + 15*prompt")
async def test_c10_crash_in_promotion(admission: Admission, faults: Faults, T: SpecTime) -> None:
    """Ten kills while slots change hands: nobody of the line is lost, and nobody gets two slots."""
    arena = await admission.instance(capacity=PLACES)
    inside = [(held.character, held.answer.session_id) for held in [await arena.hold() for _ in range(PLACES)]]
    line = await arena.line_up(LINE)
    for _ in range(KILLS):
        leaving = admission.beside(_leave_all(arena, inside))
        await T.sleep(admission.context.random.random() * T.redis_hop, "the leaves to be in flight")
        async with faults.during("kill", admission.nodes[0]):
            await leaving
        await admission.warm(admission.nodes[:1], 1)
        await _leave_all(arena, inside)  # once more, for those whose leave the kill cut off
        inside = await _moved_in(arena, line, T)
        movers = {character.id for character, _ in inside}
        line = [character for character in line if character.id not in movers]
    for position, character in enumerate(line[:PLACES]):
        expect(await arena.status(character), place(position), why="the others in line, in their order")


async def _leave_all(arena: Instance, inside: list[tuple[Character, str]]) -> None:
    await asyncio.gather(*(arena.leave(session, character) for character, session in inside))


async def _moved_in(arena: Instance, line: list[Character], T: SpecTime) -> list[tuple[Character, str]]:
    near = line[: 3 * PLACES]

    async def look() -> list[tuple[Character, str]] | None:
        polls = await asyncio.gather(*(arena.status(character) for character in near))
        if lost := [each.id for each, poll in zip(near, polls, strict=True) if poll.status == 404]:
            raise Finding(["everyone of the line waiting or in session"], f"neither: {', '.join(lost)}")
        pairs = zip(near, polls, strict=True)
        moved = [(each, poll.session_id) for each, poll in pairs if poll.state == "admitted"]
        return moved if len(moved) >= PLACES else None

    moved, _ = await T.until(look, give_up=T.recovery_never, what="the promotions after the restart")
    wanted = ", ".join(each.id for each in near[:PLACES])
    expect(", ".join(each.id for each, _ in moved), wanted, why="those who moved in, in their order")
    return moved


@verifies("AD-QUEUE-03", isolation="disruptive", nodes=3, needs=("clock", "multi_node"), waits="token_ttl + 3*recovery")
async def test_c11_skew(admission: Admission, faults: Faults, T: SpecTime) -> None:
    """Clocks five minutes behind, right and ahead: order by arrival, waits true, tokens live as long as they should."""
    behind, right, ahead = admission.nodes
    async with (
        faults.during("clock", behind, seconds=-T.scaled(SKEW)),
        faults.during("clock", ahead, seconds=T.scaled(SKEW)),
    ):
        arena = await admission.instance(capacity=1, node=right)
        held = await arena.hold(node=right)
        line = await admission.characters(6)
        places = [await arena.enqueue(each, node=admission.nodes[n % 3]) for n, each in enumerate(line)]
        for position, answer in enumerate(places):
            expect(answer, queued(position=position), why="places in order of arrival")
        for node in admission.nodes:
            expect(await arena.status(line[-1], node=node), place(5), why="the same place on every node")
        other = await admission.instance(node=ahead)
        character = await admission.character()
        session, gone = await other.dropped(character, node=ahead)
        await T.sleep_until(gone, T.token_ttl - T.slack - T.wait_tolerance, "almost the token's whole life")
        answer = await other.reclaim(character, session.token, gone=gone, node=behind)
        with admission.arranging("AD-QUEUE-04"):
            expect(answer, success(session.session_id), why="a token lives by Redis time, whoever looks at it")
        await arena.release(held.answer.session_id, held.character, node=ahead)
        await arena.promoted(line[0])


@verifies("AD-POLL-04", isolation="disruptive", nodes=1, needs=("chaos.latency", "chaos.partition"), waits="6*recovery")
async def test_c12_client_loss(admission: Admission, faults: Faults, T: SpecTime) -> None:
    """The link between clients and node breaks again and again: sessions resume by token, positions never rise."""
    node = admission.nodes[0]
    arena, (player, *line) = await admission.instance(capacity=1), await admission.characters(1 + WATCHED)
    session = await arena.admit(player)
    for character in line:
        await arena.enqueue(character)
    url, lowest = await faults.client_url(node), {character.id: WATCHED for character in line}
    for _ in range(ROUNDS):
        socket = await arena.attach(session.session_id, player, url=url)
        with admission.arranging("AD-STALE-02"):
            await socket.beat()
        async with faults.during("delay", f"{node}-client", seconds=T.redis_hop, jitter=T.redis_hop / 2):
            await _positions_never_rise(arena, line, lowest)
        async with faults.during("cut", f"{node}-client"):
            gone = await socket.closed_by_server(T.prompt_never)
        await _positions_never_rise(arena, line, lowest)
        session = await arena.resume(player, session, gone=gone)
    left = moment(await arena.release(session.session_id, player))
    await arena.promoted(line[0], since=left)


async def _positions_never_rise(arena: Instance, line: list[Character], lowest: dict[str, int]) -> None:
    for character in line:
        before, seen = lowest[character.id], (await arena.status(character)).position
        if seen is None or seen > before:
            raise Finding([f"a position of at most {before}"], f"{seen}")
        lowest[character.id] = seen
