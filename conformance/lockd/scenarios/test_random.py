"""Schedules drawn from a seed, under clients that ask every node who leads, decide, and try old terms."""

import asyncio

from holdfast.check import verifies
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.client import Lockd
from holdfast.conformance.lockd.wire import ok, participant, refused
from holdfast.fault import Strength
from holdfast.faults import Faults
from holdfast.finding import expect
from holdfast.history import Recorder
from holdfast.invariants import one_leader_per_term, require

FAULTS = ("chaos.latency", "chaos.partition", "control.kill", "control.pause", "control.restart")
# Seconds of the spec's time. A strike with its proof is over within one leader TTL, so that at most one announce is
# missed and no member forgotten: two halves that each believe to be all there is may both lead, by the spec.
STORM, STRIKE, REST = 110, 10, 20
SAMPLES = 10


@verifies(
    "TC-ELECT-04", part=2, isolation="disruptive", nodes=3, needs=FAULTS, waits="2*cluster_leader_max + 8*leader_ttl"
)
async def test_random_storm(lockd: Lockd, faults: Faults, draw: int) -> None:
    """No two leaders in one term, no decision for an old one, and one leader again afterwards."""
    nodes, _ = await lockd.cluster()
    recorder, over = Recorder(), asyncio.Event()
    watchers = [lockd.beside(_watch(lockd, node, recorder, over)) for node in nodes]
    deciders = [lockd.beside(_decide(lockd, node, recorder, over)) for node in nodes]
    await faults.storm(draw, STORM, Strength(strikes=3, longest=STRIKE, rest=REST, apart=True))
    over.set()
    await asyncio.gather(*watchers, *deciders)
    await lockd.hang_up()
    await lockd.agreed(*nodes)
    history = recorder.history()
    lockd.context.transcript.note(f"{len(history)} answers")
    require(await asyncio.to_thread(one_leader_per_term, history))
    control = await lockd.call(wire.decide(lockd.txn(), "commit"), node=nodes[0])
    expect(control, ok(state="commit"), why="control: decisions work again")


async def _watch(lockd: Lockd, node: str, recorder: Recorder, over: asyncio.Event) -> None:
    """Whom this node shows as valid leader, and that an older term than it shows is refused."""
    highest = 0
    while not over.is_set():
        with recorder.operation(node, "lead") as call:
            answer = await lockd.leader(node)
            if answer.has_leader and answer.leader.endpoint == lockd.endpoint(node):
                call.ok(answer.leader.term)
            else:
                call.failed("does not lead")
        if answer.has_leader and answer.leader.term > highest > 0:
            await _old_term(lockd, node, highest)
        highest = max(highest, answer.leader.term if answer.has_leader else 0)
        await asyncio.sleep(lockd.T.leader_ttl / SAMPLES)


async def _old_term(lockd: Lockd, node: str, term: int) -> None:
    request = wire.apply(lockd.txn(), "commit", [participant("default", "k")], term=term)
    answer = await lockd.call(request, node=node)
    if answer.answered:
        expect(answer, refused("tc_term_stale"), refused("tc_unavailable"), why=f"term {term} at {node}, an old one")


async def _decide(lockd: Lockd, node: str, recorder: Recorder, over: asyncio.Event) -> None:
    while not over.is_set():
        with recorder.operation(f"decider of {node}", "decide") as call:
            answer = await lockd.call(wire.decide(lockd.txn(), "commit"), node=node)
            if answer.ok:
                call.ok(answer.code)
            elif answer.answered:
                legal = (refused("tc_not_leader"), refused("tc_unavailable"), refused("tc_term_stale"))
                expect(answer, *legal, why="a decision in a storm")
                call.failed(answer.code)
        await asyncio.sleep(2 * lockd.T.leader_ttl / SAMPLES)
