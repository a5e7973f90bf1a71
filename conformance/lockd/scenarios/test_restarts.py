"""Nodes that come and go while others work (C13, C14)."""

import asyncio

from holdfast.check import verifies
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.client import Lockd
from holdfast.conformance.lockd.membership import nowhere
from holdfast.conformance.lockd.wire import ok, refused
from holdfast.faults import Faults
from holdfast.finding import expect
from holdfast.spectime import SpecTime

# Seconds of the spec's time between two restarts.
APART = 60
KILLS = 6


@verifies(
    "TC-LEAVE-09",
    isolation="disruptive",
    nodes=3,
    waits="cluster_leader_max + 3*(four_leader_ttl + rejoin_max) + exit_max",
)
async def test_c13_rolling_restart(lockd: Lockd, faults: Faults, T: SpecTime) -> None:
    """Every node in turn is told to stop and started again: lists come back to three, terms only grow."""
    nodes, leader = await lockd.cluster()
    for node in nodes:
        began = T.now()
        async with faults.during("term", node):
            await lockd.hang_up()
        back = T.now()
        await lockd.hang_up()
        found, _ = await lockd.agreed(*nodes, bound="rejoin_max", above=leader.term - 1)
        T.at_most("rejoin_max", since=back, seen=T.now(), what="three in every list")
        leader = found
        await T.sleep_until(began, T.scaled(APART), "the next one's turn")


@verifies(
    "TC-RM-09", part=2, isolation="disruptive", nodes=3, waits="2*cluster_leader_max + 6*(rejoin_max + rm_call_max)"
)
async def test_c14_killed_while_registering(lockd: Lockd, faults: Faults, T: SpecTime) -> None:
    """A member dies while a registration is under way: on all that live, or on none."""
    nodes, _ = await lockd.cluster()
    dice = lockd.context.random
    for number in range(KILLS):
        at, victim, witness = dice.sample(nodes, 3)
        backend, endpoint = f"island-{number}", nowhere(number + 1)
        asking = lockd.beside(lockd.call(wire.register(backend, endpoint), lockd.own(at), node=at))
        await asyncio.sleep(dice.random() * 0.02)
        async with faults.during("kill", victim):
            answer = await asking
            expect(answer, ok(), refused("tc_rm_replication_failed"), why="a registration while a member dies")
            wanted = [endpoint] if answer.ok else []

            async def settled(
                wanted: list[str] = wanted, backend: str = backend, live: tuple[str, str] = (at, witness)
            ) -> bool:
                return all([await lockd.entries(backend, node) == wanted for node in live])

            await lockd.comes(settled, "undo_max", since=T.now(), what=f"{wanted or 'nothing'} on every live node")
        await lockd.hang_up()
        await lockd.introduce(*nodes)
        await lockd.agreed(*nodes)
