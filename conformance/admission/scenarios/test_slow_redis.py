"""A Redis that is slow, silent or gone (C3, C4): every attempt is decided in time, nothing is left of the lost ones."""

import asyncio

from holdfast.check.faults import Faults
from holdfast.check.finding import Unsafe, demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.conformance.admission.client import Admission, Instance
from holdfast.conformance.admission.faults import in_time, service_back
from holdfast.conformance.admission.identities import Character
from holdfast.conformance.admission.wire import Answer, refused, success, timed_out, unavailable

FAULTS = ("chaos.latency", "chaos.partition", "chaos.redis")
ATTEMPTS = 20
# Seconds of the spec's time: a slow command, a stall longer than any attempt may take, an outage.
SLOW, STALL, OUTAGE = 3, 14, 20


@verifies("AD-TIME-01", isolation="disruptive", nodes=1, needs=FAULTS, waits="3*attempt_deadline + recovery")
async def test_c03_slow_redis(admission: Admission, faults: Faults, T: SpecTime) -> None:
    """Every command takes three seconds, then none is answered for fourteen."""
    arena = await admission.instance(room=2 * ATTEMPTS)
    slow, lost = await admission.characters(ATTEMPTS), await admission.characters(ATTEMPTS)
    async with faults.during("delay", f"{admission.nodes[0]}-redis", seconds=T.scaled(SLOW), direction="down"):
        await _decided_in_time(arena, slow, T)
    async with faults.during("stall", f"{admission.nodes[0]}-redis"):
        stalled = T.now()
        await _decided_in_time(arena, lost, T)
        await T.sleep_until(stalled, T.scaled(STALL), "the stall to end")
    healed = T.now()
    await T.sleep_until(healed, T.undo_settle, "late work to be undone")
    for character in lost:
        answer = await arena.connect(character)
        with arena.admission.arranging("AD-TIME-05"):
            expect(answer, success(), why="an attempt that was answered timeout left no session behind")


async def _decided_in_time(arena: Instance, people: list[Character], T: SpecTime) -> list[Answer]:
    sent = T.now()
    answers = await asyncio.gather(*(arena.connect(character) for character in people))
    for answer in answers:
        in_time(T, answer, sent=sent, what="the answer to an attempt under the fault")
        expect(answer, success(), timed_out(), unavailable(), why="decided, whatever the outcome")
    return answers


@verifies("AD-OUT-02", isolation="disruptive", nodes=2, needs=FAULTS, waits="2*attempt_deadline + 4*recovery")
async def test_c04_redis_down(admission: Admission, faults: Faults, T: SpecTime) -> None:
    """Redis is killed and comes back with its data: refusals with a hint meanwhile, sockets kept, service back soon."""
    arena = await admission.instance(room=ATTEMPTS)
    inside, *outside = await admission.characters(1 + ATTEMPTS)
    held = await arena.hold(inside)
    async with faults.during("down", "redis") as window:
        answers = await asyncio.gather(*(arena.connect(character) for character in outside))
        for answer in answers:
            if answer.outcome in ("success", "queued"):
                raise Unsafe(["nobody let in or queued without Redis"], answer.describe())
            with admission.arranging("AD-OUT-01"):
                expect(answer, unavailable(), why="a refusal says when to come back")
                demand(answer.retry_header is not None, "a Retry-After header", answer.describe())
        await T.sleep(window.asked + T.scaled(OUTAGE) - T.now().hi, "the outage to end")
    healed = T.now()
    with admission.arranging("AD-OUT-04"):
        back = await service_back(arena, outside[0], since=healed)
        T.at_most("recovery", since=healed, seen=back, what="service")
    with admission.arranging("AD-OUT-03"):
        await held.socket.beat("the socket that was open")
        expect(await arena.connect(inside), refused("ALREADY_IN_SESSION"), why="the session that was there is there")
