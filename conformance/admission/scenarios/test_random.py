"""Faults drawn from a seed, under many clients whose history must keep the invariants whatever the faults are."""

import asyncio

from holdfast.check.faults import Faults
from holdfast.check.finding import expect
from holdfast.check.history import Recorder
from holdfast.check.invariants import at_most, require
from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.conformance.admission.client import Admission, Instance
from holdfast.conformance.admission.faults import service_back
from holdfast.conformance.admission.identities import Character
from holdfast.conformance.admission.wire import Answer, done, refused

# At least these; faults of whatever else a target offers are drawn too.
FAULTS = ("chaos.latency", "chaos.partition")
# In the spec's seconds; shorter than a silent session lives, so that sessions end only by their clients.
STORM = 40
CLIENTS, PLACES = 12, 5


@verifies(
    "AD-ADMIT-03",
    part=2,
    isolation="disruptive",
    nodes=2,
    busy=True,
    needs=FAULTS,
    waits="3*attempt_deadline + 4*recovery + 10*prompt",
)
async def test_random_storm(admission: Admission, faults: Faults, T: SpecTime, draw: int) -> None:
    """Clients enter and leave one small instance through both nodes while faults strike at random."""
    arena, people = await admission.instance(capacity=PLACES), await admission.characters(CLIENTS)
    free, probe = await admission.instance(), await admission.character()
    recorder, over = Recorder(), asyncio.Event()
    clients = [admission.beside(_client(arena, each, recorder, over, turn)) for turn, each in enumerate(people)]
    await faults.storm(draw, STORM)
    over.set()
    last = await asyncio.gather(*clients)

    history = recorder.history()
    require(await asyncio.to_thread(at_most, history, PLACES, acquire="enter", release="leave"))
    await service_back(free, probe, since=T.now())
    for character, held in zip(people, last, strict=True):
        await _kept(arena, character, held)


async def _kept(arena: Instance, character: Character, held: Answer | None) -> None:
    """Raises Finding if a session that was given and not left is gone, unless it may have gone stale by now."""
    T = arena.admission.T
    if held is None or T.now().hi > held.sent + T.stale_limit - T.slack:
        return
    expect(await arena.connect(character), refused("ALREADY_IN_SESSION"), why="its session outlived the storm")


async def _client(
    arena: Instance, character: Character, recorder: Recorder, over: asyncio.Event, turn: int
) -> Answer | None:
    """Enters and leaves until the storm is over; returns the answer that gave the session it then holds, if any."""
    admission, held = arena.admission, None
    while not over.is_set():
        node = admission.nodes[turn % len(admission.nodes)]
        if held:
            await _leave(arena, character, recorder, held, node)
            held = None
        else:
            held = await _enter(arena, character, recorder, node)
        turn += 1
        await admission.T.sleep(admission.context.random.random() * admission.T.redis_hop, "the client's next idea")
    return held


async def _enter(arena: Instance, character: Character, recorder: Recorder, node: str) -> Answer | None:
    with recorder.operation(character.id, "enter", arena.id) as call:
        answer = await arena.connect(character, node=node)
        if answer.outcome == "success":
            call.ok(answer.session_id)
            return answer
        if answer.outcome == "failed" and answer.status < 500:
            call.failed(answer.reason)
    if answer.outcome == "queued":
        await arena.unqueue(character, node=node)
    # Promoted before it could leave the line, or admitted by an attempt whose answer was lost.
    with recorder.operation(character.id, "enter", arena.id) as call:
        poll = await arena.status(character, node=node)
        if poll.session_id:
            call.ok(poll.session_id)
            return poll
        call.failed("not admitted")
    return None


async def _leave(arena: Instance, character: Character, recorder: Recorder, held: Answer, node: str) -> None:
    with recorder.operation(character.id, "leave", arena.id, held.session_id) as call:
        answer = await arena.leave(held.session_id, character, node=node)
        if done().matches(answer):
            call.ok()
