"""A suspension against attempts that are already in flight (seed §6, §11 Atomic Admission)."""

import asyncio

from holdfast.check.finding import Inconclusive, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.conformance.admission.client import Admission, Instance
from holdfast.conformance.admission.identities import Character
from holdfast.conformance.admission.judging import none_of
from holdfast.conformance.admission.keys import Keys
from holdfast.conformance.admission.wire import queued, refused, success, timed_out, unavailable

# When the suspension is sent, in hops: early, midway and late in an attempt of one, two or three round trips.
MOMENTS = (0.25, 0.5, 0.75, 1.25, 1.5, 1.75, 2.25, 2.5)


@verifies("AD-ADMIT-07", part=2, isolation="quiet", nodes=2, waits="6*inflight_hop")
async def test_a_suspension_also_stops_attempts_in_flight(admission: Admission, T: SpecTime) -> None:
    slow, quick, *_ = admission.nodes
    free, full, keys = await admission.instance(room=100), await admission.instance(capacity=1), admission.keys()
    await full.hold(node=quick)
    await admission.deployment.link(slow).delay(T.inflight_hop, direction="up")

    tries = [(arena, share) for arena in (free, full) for share in MOMENTS]
    stopped = await admission.parallel(
        [lambda arena=arena, share=share: _suspended_in_time(arena, keys, share, T) for arena, share in tries]  # type: ignore[misc]  # lambda defaults
    )
    if not any(stopped):
        raise Inconclusive("every attempt was finished before its suspension was acknowledged")
    for arena, control, owner in ((free, success(), "AD-ADMIT-01"), (full, queued(), "AD-POLL-01")):
        answer = await arena.connect(await admission.character(node=quick), node=slow)
        with admission.arranging(owner):
            expect(answer, control, why="control: the same attempt without a suspension")


async def _suspended_in_time(arena: Instance, keys: Keys, share: float, T: SpecTime) -> bool:
    """Returns whether the suspension was acknowledged before the attempt had any effect; then it must have none."""
    slow, quick, *_ = arena.admission.nodes
    character = await arena.admission.character(node=quick)

    async def suspend() -> bool:
        await T.sleep(share * T.inflight_hop, "the attempt to be in flight")
        await arena.admission.suspend(character, node=quick)
        return not await _traces(keys, arena, character)

    answer, in_time = await asyncio.gather(arena.connect(character, node=slow), suspend())
    if in_time:
        expect(answer, refused("CHARACTER_SUSPENDED"), timed_out(), unavailable(), why=f"suspended at {share} hops")
        await T.sleep(2 * T.inflight_hop, "a late trace of the attempt")
        none_of(await _traces(keys, arena, character), "trace of the attempt", f"suspended at {share} hops")
    return in_time


async def _traces(keys: Keys, arena: Instance, character: Character) -> list[str]:
    session, place = await keys.together(
        ("GET", keys.name("session_char", character.id)),
        ("ZSCORE", keys.name("queue_pending", arena.id), character.id),
    )
    return [name for name, value in (("session", session), ("place in line", place)) if value is not None]
