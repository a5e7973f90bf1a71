"""Faults drawn from a seed, while every node is asked who leads and for decisions."""

import asyncio
from functools import partial
from itertools import permutations

from holdfast.check.faults import Faults
from holdfast.check.finding import Unsafe, expect
from holdfast.check.history import Recorder
from holdfast.check.invariants import monotonic_tokens, one_leader_per_term, require
from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.client import Lockd
from holdfast.conformance.lockd.quorum import crossed
from holdfast.conformance.lockd.scenarios.steps import together_again
from holdfast.conformance.lockd.wire import Leader, ok, participant, refused, stale_term
from holdfast.target.fault import Strength

FAULTS = ("chaos.latency", "chaos.partition", "multi_node")
# Seconds of the spec's time. A strike with its proof is over within one leader TTL and the next one not before another,
# so that at most one announce is missed: two halves that each believe to be all there is may both lead, by the spec.
STORM = 110
# How often each node is asked per leader TTL.
LOOKS = 10
STRIKES = Strength(strikes=3, longest=10, rest=20, apart=True)


@verifies(
    "TC-ELECT-04",
    part=3,
    isolation="disruptive",
    needs=FAULTS,
    waits="cluster_leader_max + next_tick_max + 8*leader_ttl + member_expiry_settled",
)
async def test_random_storm(lockd: Lockd, faults: Faults, T: SpecTime, draw: int) -> None:
    """No two leaders of one term, no decision under a term that is over, and one cluster again afterwards."""
    _, first = await lockd.cluster()
    await crossed(lockd, *(f"{one}-{other}" for one, other in permutations(lockd.nodes, 2)))
    recorder, over = Recorder(), asyncio.Event()
    watchers = [lockd.beside(_watch(lockd, node, recorder, over)) for node in lockd.nodes]
    await faults.storm(draw, STORM, STRIKES)
    over.set()
    await asyncio.gather(*watchers)

    last = await together_again(lockd, T.now(), "member_expiry_settled")
    history = recorder.history()
    require(await asyncio.to_thread(one_leader_per_term, history))
    require(await asyncio.to_thread(partial(monotonic_tokens, history, grant="apply", where="argument", repeats=True)))
    if last.term > first.term:
        for node in lockd.nodes:
            await _fenced(lockd, node, first, last)


class _Settled:
    """Whether a node has known all members for a whole lease.

    One that was started anew knows only itself at first and may lead itself, which the seed accepts; whatever it got by
    the quorum of such a list has run out when a lease is over.
    """

    def __init__(self, lockd: Lockd, node: str) -> None:
        self._lockd = lockd
        self._node = node
        self._wanted = sorted(lockd.endpoint(each) for each in lockd.nodes)

    async def look(self) -> bool:
        answer = await self._lockd.call(wire.members(), node=self._node)
        if not answer.ok:
            self._lockd.views.forget(self._node)
        return sorted(answer.endpoints) == self._wanted and self._lockd.views.settled(self._node, answer.sent)


async def _watch(lockd: Lockd, node: str, recorder: Recorder, over: asyncio.Event) -> None:
    """Ask this node who leads, and apply under the term that it names, until the storm is over."""
    settled = _Settled(lockd, node)
    while not over.is_set():
        counts = await settled.look()
        with recorder.operation(node, "lead") as call:
            answer = await lockd.leader(node)
            leader, counts = answer.leader, counts and answer.has_leader
            if counts:
                call.subject = leader.id
                call.ok(leader.term)
            else:
                call.failed()
        if counts:
            await _apply(lockd, node, recorder, leader.term)
        await lockd.T.sleep(lockd.T.leader_ttl / LOOKS, "the next look")


async def _apply(lockd: Lockd, node: str, recorder: Recorder, term: int) -> None:
    """On one node, an apply that was accepted fences all earlier terms off."""
    with recorder.operation(node, "apply", node, term) as call:
        one = [participant("default", "k")]
        answer = await lockd.call(wire.apply(lockd.txn(), "commit", one, term=term), node=node)
        if answer.ok:
            call.ok()
        elif answer.answered:
            call.failed(answer.code)
            expect(answer, *stale_term(), refused("tc_unavailable"), why=f"an apply at {node}")


async def _fenced(lockd: Lockd, node: str, first: Leader, last: Leader) -> None:
    one = [participant("default", "k")]
    for term, legal in ((first.term, stale_term()), (last.term, (ok(state="commit"),))):
        answer = await lockd.call(wire.apply(lockd.txn(), "commit", one, term=term), node=node)
        if answer.ok and term < last.term:
            expected = [each.describe() for each in legal]
            raise Unsafe(expected, answer.describe(), f"the stale term {term} at {node} after the storm")
        expect(answer, *legal, why=f"term {term} at {node} after the storm")
