"""Everybody at once (C1, C2, C13, C14): races that only a crowd over several nodes shows, on links that jitter."""

import math
from contextlib import AsyncExitStack
from functools import partial

from holdfast.check.faults import Faults
from holdfast.check.finding import expect
from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.conformance.admission.client import Admission
from holdfast.conformance.admission.crowds import exactly, one_success, settled
from holdfast.conformance.admission.limiter import expect_locked
from holdfast.conformance.admission.scenarios.bursts import burst
from holdfast.conformance.admission.wire import place, queued, refused, success
from holdfast.conformance.shared.wire import moment
from holdfast.target.fault import Receipt

FAULTS = ("chaos.latency", "multi_node")
DOUBLE, INSTANCES = 120, 5
CROWD, PLACES = 200, 10
WAITING = 20
# When failures begin, as a share of the window before a border; the last ones come after it.
BEFORE = 0.1


async def _jitter(admission: Admission, faults: Faults, stack: AsyncExitStack) -> None:
    """Delays each node's commands to Redis by a random time, so that no order arises by itself."""
    hop = admission.T.redis_hop
    for node in admission.nodes:
        await stack.enter_async_context(faults.during("delay", f"{node}-redis", seconds=hop, jitter=hop / 2))


@verifies("AD-ADMIT-09", part=2, isolation="quiet", busy=True, needs=FAULTS, waits="attempt_deadline + 3*recovery")
async def test_c01_double_admit(admission: Admission, faults: Faults) -> None:
    """One character, many attempts over three nodes and five instances: exactly one success."""
    arenas = [await admission.instance(room=DOUBLE) for _ in range(INSTANCES)]
    character = await admission.character()
    async with AsyncExitStack() as stack:
        await _jitter(admission, faults, stack)
        calls = [
            partial(arenas[n % INSTANCES].connect, character, node=admission.nodes[n % len(admission.nodes)])
            for n in range(DOUBLE)
        ]
        answers = await burst(admission, faults, calls, "connects of one character", admission.nodes)
    one_success(answers, f"{DOUBLE} attempts of one character at once")


@verifies("AD-ADMIT-03", part=2, isolation="quiet", busy=True, needs=FAULTS, waits="attempt_deadline + 3*recovery")
async def test_c02_oversell(admission: Admission, faults: Faults, T: SpecTime) -> None:
    """Two hundred for ten places: ten get in, the others wait as far as the queue takes them."""
    arena, people = await admission.instance(capacity=PLACES), await admission.characters(CROWD)
    async with AsyncExitStack() as stack:
        await _jitter(admission, faults, stack)
        nodes = admission.nodes
        calls = [partial(arena.connect, each, node=nodes[n % len(nodes)]) for n, each in enumerate(people)]
        answers = await burst(admission, faults, calls, "connects for ten places", nodes)
    waiting = min(CROWD - PLACES, T.count("queue_cap"))
    fate = {"success": PLACES, "queued": waiting, "QUEUE_FULL": CROWD - PLACES - waiting}
    exactly(answers, fate, "what became of them")


@verifies("AD-DRAIN-03", isolation="quiet", busy=True, needs=FAULTS, waits="3*recovery + 5*promote_within")
async def test_c13_drain_under_fire(admission: Admission, faults: Faults, T: SpecTime) -> None:
    """Drain is switched on during two hundred connects: the queue grows no more, and empties in its order."""
    arena = await admission.instance(capacity=1)
    held = await arena.hold()
    line = await arena.line_up(WAITING)
    crowd = await admission.characters(CROWD)
    async with AsyncExitStack() as stack:
        await _jitter(admission, faults, stack)
        calls = [partial(arena.connect, each) for each in crowd]
        await admission.warm(admission.nodes[:1], CROWD)
        under_way = admission.beside(burst(admission, faults, calls, "connects amid the switch"))
        await T.sleep(T.redis_hop, "the first of them to be answered")
        acknowledged = await arena.drain()
        depth = (await arena.status(line[0])).depth
        answers = await under_way
        expect((await arena.status(line[0])).depth, depth, why="depth at the end, against that at the switch")
    for answer in settled(answers):
        expect(answer, queued(), refused("DRAIN_MODE"), refused("QUEUE_FULL"))
        if answer.sent > acknowledged.received:
            expect(answer, refused("DRAIN_MODE"), why="sent after the acknowledgement")
    inside, session = held.character, held.answer.session_id
    for position, character in enumerate(line[:5]):
        await arena.release(session, inside)
        with admission.arranging("AD-DRAIN-02"):
            promoted, _ = await arena.admitted(character, within=T.promote_never)
        inside, session = character, promoted.session_id
        with admission.arranging("AD-DRAIN-02"):
            expect(await arena.status(line[position + 1]), place(0), why="the next moves up")


@verifies("AD-RATE-03", isolation="quiet", waits="3*rate_window", needs=("chaos.latency",))
async def test_c14_minute_border(admission: Admission, faults: Faults, T: SpecTime) -> None:
    """Failures around the borders of a window counted by the clock, and by its first failure: the fifth locks."""
    arena, (by_clock, by_first) = await admission.instance(), await admission.characters(2)
    limit, window = T.count("rate_failures"), T.rate_window
    async with faults.stimulus("failures across a border", "one user") as clock:
        now = T.now().hi
        ahead = await _server_ahead(admission)
        border = (math.floor((now + ahead) / window) + 1) * window - ahead
        if border - now < BEFORE * window:
            border += window
        await T.sleep(border - BEFORE * window - T.now().hi, "the end of the server's window")
        failures = [await arena.fail(by_clock) for _ in range(limit - 2)]
        await T.sleep(border + BEFORE * window - T.now().hi, "the start of the next")
        failures += [await arena.fail(by_clock) for _ in range(2)]
        span = f"{failures[0].sent - border:+.2f} to {failures[-1].received - border:+.2f} s around it"
        clock.receipts.append(
            Receipt(f"failures from {span}", failures[limit - 3].received < border < failures[-2].sent)
        )
        expect_locked(T, failures, await arena.connect(by_clock))
    async with faults.stimulus("failures across the first one's minute", "one user") as first:
        start = await arena.fail(by_first)
        await T.sleep_until(moment(start), (1 - BEFORE) * window, "the first failure to be about to leave")
        others = [await arena.fail(by_first) for _ in range(limit - 2)]
        await T.sleep_until(moment(start), (1 + BEFORE) * window, "the first failure to have left")
        others += [await arena.fail(by_first) for _ in range(2)]
        gone = others[-2].sent - start.received > window
        first.receipts.append(Receipt(f"{len(others)} failures in the {2 * BEFORE:.0%} around its end", gone))
        expect_locked(T, others, await arena.connect(by_first))
    with admission.arranging("AD-RATE-04"):
        expect(await arena.connect(await admission.character()), success(), why="control: nobody else is locked")


async def _server_ahead(admission: Admission) -> float:
    """Returns how far Redis's clock, which a limiter may use, is ahead of our monotonic one."""
    asked = admission.T.now()
    return await admission.keys().now() - asked.hi
