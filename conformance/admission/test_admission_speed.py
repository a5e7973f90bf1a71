"""How fast a direct admission is (upstream definition of done, fills seed §9)."""

import asyncio

from holdfast.check.finding import expect
from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.conformance.admission.client import Admission, Instance
from holdfast.conformance.admission.identities import Character
from holdfast.conformance.admission.wire import Answer, success, timed_out

TRIALS = 299
INSIDE = 300
# Attempts a second. Rates never scale.
BUSY, SLOW = 50, 5


async def _trials(arena: Instance, people: list[Character], rate: int) -> list[Answer]:
    """Starts direct admissions at this rate, however long the answers take."""
    admission, T = arena.admission, arena.admission.T
    start = T.now()

    async def one(number: int, character: Character) -> Answer:
        await T.sleep_until(start, number / rate, f"the arrivals, {rate} a second")
        return await arena.connect(character, node=admission.nodes[number % len(admission.nodes)])

    return await asyncio.gather(*(one(number, character) for number, character in enumerate(people)))


def _judge(admission: Admission, T: SpecTime, answers: list[Answer]) -> None:
    """Judges how long they took. A timeout took long, and counts; everything else has to be an admission."""
    with admission.arranging("AD-ADMIT-01"):
        for answer in answers:
            expect(answer, success(), timed_out(), why="a free slot is there for everybody")
    samples = [answer.received - answer.sent for answer in answers]
    T.percentile("admit_p95", samples, 0.95)
    T.percentile("admit_p99", samples, 0.99)


@verifies("AD-TIME-06", waits="6*attempt_deadline + 8*admit_p95")
async def test_direct_admissions_are_fast_with_hundreds_inside(admission: Admission, T: SpecTime) -> None:
    trials = max(TRIALS, round(BUSY * T.scaled(60)))
    arena = await admission.instance(room=INSIDE + trials)
    await arena.fill(INSIDE)

    _judge(admission, T, await _trials(arena, await admission.characters(trials), BUSY))


@verifies("AD-TIME-06", part=2, isolation="quiet", waits="68*admit_p95")
async def test_round_trips_to_redis_do_not_grow_with_the_sessions_inside(admission: Admission, T: SpecTime) -> None:
    """Opens sockets for the sessions inside, because the trials take longer than a silent session lives."""
    arena = await admission.instance(room=INSIDE + TRIALS)
    inside = await admission.characters(INSIDE)
    for _, socket in await admission.parallel([lambda c=c: arena.join(c) for c in inside], at_once=16):  # type: ignore[misc]  # mypy can't see the bound default
        socket.keep_beating(T.heartbeat_interval)
    people = await admission.characters(TRIALS)
    await admission.deployment.link(admission.nodes[0]).delay(T.redis_hop, direction="down")

    _judge(admission, T, await _trials(arena, people, SLOW))
