"""Redis away from some or all nodes (C5 … C8): nobody loses a session, nobody gets two, and service comes back."""

import asyncio

from holdfast.check.faults import Faults
from holdfast.check.finding import Inconclusive, demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.conformance.admission import wire
from holdfast.conformance.admission.client import Admission, Held, Instance
from holdfast.conformance.admission.faults import service_back
from holdfast.conformance.admission.identities import Character
from holdfast.conformance.admission.wire import Answer, queued, refused, success, timed_out, unavailable

FAULTS = ("chaos.latency", "chaos.partition", "chaos.redis")
PLAYERS, NEWCOMERS, CUTS = 5, 10, 3
# Heartbeat period in heartbeat intervals: regular under every reading.
CADENCE = 0.9


async def _play(arena: Instance, count: int, node: str | None = None) -> list[Held]:
    people = await arena.admission.characters(count)
    return [Held(character, *await arena.join(character, node=node)) for character in people]


@verifies("AD-OUT-03", isolation="disruptive", nodes=1, needs=FAULTS, waits="outage_long + janitor_check + recovery")
async def test_c05_long_outage(admission: Admission, faults: Faults, T: SpecTime) -> None:
    """Three heartbeat intervals without Redis, sockets beating: no cleanup removes them afterwards."""
    arena = await admission.instance()
    playing, every = await _play(arena, PLAYERS), CADENCE * T.heartbeat_interval
    async with faults.during("cut", f"{admission.nodes[0]}-redis") as window:
        for beats in (3, 2, 1, 0):
            await T.sleep(window.in_force + T.outage_long - beats * every - T.now().hi, "the next heartbeats")
            await asyncio.gather(*(held.socket.beat() for held in playing))
    healed = T.now()
    await T.sleep_until(healed, every, "the next heartbeats")
    await asyncio.gather(*(held.socket.beat() for held in playing))
    await T.sleep_until(healed, T.janitor_check, "a whole janitor interval")
    for held in playing:
        await held.socket.beat("its session is still there")
        expect(await arena.connect(held.character), refused("ALREADY_IN_SESSION"), why="its session is still there")


@verifies("AD-OUT-05", isolation="disruptive", nodes=1, needs=FAULTS, waits="3*recovery")
async def test_c06_redis_back_empty(admission: Admission, faults: Faults, T: SpecTime) -> None:
    """Redis loses everything while both slots are taken: within recovery no session or slot is given twice."""
    arena = await admission.instance(capacity=2)
    playing, newcomers = await _play(arena, 2), await admission.characters(NEWCOMERS)
    for held in playing:
        held.socket.keep_beating(T.heartbeat_interval / 3)
    async with faults.during("empty", "redis"):
        pass
    back = T.now()
    await _registered_again(admission, arena, [*(held.character for held in playing), *newcomers])
    entered = [character for character in newcomers if (await arena.connect(character)).outcome == "success"]
    await T.sleep_until(back, T.recovery, "the recovery")
    alive = [held for held in playing if held.socket.open_now and await held.socket.answers()]
    inside = len(alive) + len([c for c in entered if await _is_inside(arena, c)])
    seen = f"{len(alive)} sockets of before, and {inside - len(alive)} newcomers"
    demand(inside <= 2, "at most 2 sessions", seen, unsafe=True)
    for held in alive:
        expect(await arena.connect(held.character), refused(), why="a session that lives on is not given twice")


async def _registered_again(admission: Admission, arena: Instance, people: list[Character]) -> None:
    """Registers the instance again, as an operator would; waits until the service accepts it."""

    async def taken() -> bool:
        answer = await admission.ask_admin(wire.put_instance(arena.id, capacity=2, state="accepting"))
        return 200 <= answer.status < 300

    with admission.arranging("AD-OUT-04"):
        await admission.T.until(taken, give_up=admission.T.recovery_never, what="administration to work again")
    if admission.features.has("accounts"):
        for character in people:
            await admission.register(character)


async def _is_inside(arena: Instance, character: Character) -> bool:
    return (await arena.connect(character)).reason == "ALREADY_IN_SESSION"


@verifies(
    "AD-OUT-02", isolation="disruptive", nodes=2, needs=(*FAULTS, "multi_node"), waits="2*attempt_deadline + 2*recovery"
)
async def test_c07_partition_one_node(admission: Admission, faults: Faults, T: SpecTime) -> None:
    """Node a cannot reach Redis and refuses, node b serves; afterwards each character has one session."""
    a, b = admission.nodes[:2]
    arena, people = await admission.instance(room=2 * NEWCOMERS, node=b), await admission.characters(NEWCOMERS)
    async with faults.during("stall", f"{a}-redis"):
        through_a, through_b = await asyncio.gather(
            asyncio.gather(*(arena.connect(character, node=a) for character in people)),
            asyncio.gather(*(arena.connect(character, node=b) for character in people)),
        )
        for answer in through_a:
            expect(answer, timed_out(), unavailable(), why="node a decides nothing without Redis")
        for answer in through_b:
            expect(answer, success(), why="node b is not concerned")
    await T.sleep(T.undo_settle, "late work of node a")
    for character, answer in zip(people, through_b, strict=True):
        for node in (a, b):
            again = await arena.connect(character, node=node)
            expect(again, refused("ALREADY_IN_SESSION"), why=f"one session, whichever node is asked ({node})")
        await (await arena.attach(answer.session_id, character, node=a)).beat("its session, through node a")


@verifies("AD-OUT-04", isolation="disruptive", nodes=1, busy=True, needs=FAULTS, waits="6*recovery")
async def test_c08_reply_loss(admission: Admission, faults: Faults, T: SpecTime) -> None:
    """The link breaks between command and reply under load; after one more try each has exactly one session."""
    arena, free = await admission.instance(capacity=CUTS * NEWCOMERS), await admission.instance()
    people, probes = await admission.characters(CUTS * NEWCOMERS), await admission.characters(CUTS)
    link, lost = f"{admission.nodes[0]}-redis", list[Character]()
    for number, probe in enumerate(probes):
        crowd = people[number * NEWCOMERS : (number + 1) * NEWCOMERS]
        answers = await _without_replies(admission, faults, arena, crowd, link)
        lost += [each for each, answer in zip(crowd, answers, strict=True) if answer.outcome != "success"]
        await service_back(free, probe, since=T.now())
    if not lost:
        raise Inconclusive("every attempt was answered before the link broke")
    for character in lost:
        again = await arena.connect(character)
        expect(again, success(), refused("ALREADY_IN_SESSION"), why="tried once more after a lost reply")
    for character in people:
        expect(await arena.connect(character), refused("ALREADY_IN_SESSION"), why="each has its session")
    expect(await arena.connect(await admission.character()), queued(), why="as many sessions as characters, no more")


async def _without_replies(
    admission: Admission, faults: Faults, arena: Instance, crowd: list[Character], link: str
) -> list[Answer]:
    """Connects the crowd; Redis runs the commands, but its answers are held and then lost with the connection."""
    await admission.warm(admission.nodes[:1], len(crowd))
    async with faults.during("lose", link):
        answers = asyncio.gather(*(arena.connect(character) for character in crowd))
        await admission.T.sleep(admission.T.deadline_slack, "the connects to reach Redis")
    return await answers
