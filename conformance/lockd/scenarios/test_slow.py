"""Slow and breaking ways between nodes (C10 … C12)."""

import asyncio
from itertools import permutations

from holdfast.check import verifies
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.client import Lockd
from holdfast.conformance.lockd.membership import nowhere
from holdfast.conformance.lockd.partitions import around, struck
from holdfast.conformance.lockd.scenarios.test_partitions import keeps
from holdfast.conformance.lockd.wire import ok, refused
from holdfast.faults import Faults
from holdfast.finding import expect
from holdfast.spectime import SpecTime

SLOW = ("chaos.latency",)
# Seconds of the spec's time.
LATENCY, WATCHED, BEYOND_TIMEOUT = 0.3, 600, 6
CALLS, RESET_EVERY = 200, 20


@verifies("TC-ELECT-08", isolation="disruptive", nodes=3, needs=SLOW, waits="cluster_leader_max + 40*leader_ttl")
async def test_c10_latency_everywhere(lockd: Lockd, faults: Faults, T: SpecTime) -> None:
    """Ten minutes with every way slow: nobody else leads, nobody is forgotten."""
    nodes, leader = await lockd.cluster()
    listed = sorted(lockd.endpoint(node) for node in nodes)
    async with struck(faults, "delay", permutations(nodes, 2), seconds=T.scaled(LATENCY), direction="down"):

        async def look() -> None:
            with lockd.unless_machine_slept():
                await keeps(lockd, nodes, leader)
                for node in nodes:
                    expect(sorted(await lockd.members(node)), listed, why=f"the list of {node}")

        await lockd.throughout(look, T.scaled(WATCHED), "one leader, equal lists", every=T.clock_slack)
    found, _ = await lockd.agreed(*nodes)
    expect((found.endpoint, found.term), (leader.endpoint, leader.term), why="the leader after ten minutes")


@verifies("TC-RM-05", part=2, isolation="disruptive", nodes=3, needs=SLOW, waits="cluster_leader_max + 3*rm_call_max")
async def test_c11_one_node_too_slow(lockd: Lockd, faults: Faults, T: SpecTime) -> None:
    """One node of three answers later than anybody waits: the leader stays, changes to the registry are refused."""
    _, leader = await lockd.cluster()
    old = lockd.at(leader.endpoint)
    slow, quick = lockd.others(old)
    backend, endpoint = "island-of-nobody", nowhere(7)
    async with struck(faults, "delay", around(lockd, slow), seconds=T.scaled(BEYOND_TIMEOUT), direction="up"):
        answer = await lockd.call(wire.register(backend, endpoint), lockd.own(old), node=old)
        expect(
            answer, refused("tc_rm_replication_failed"), why="a registration that one member does not answer in time"
        )
        for node in (old, quick):
            expect(await lockd.entries(backend, node), [], why="what was refused is not there")
        await keeps(lockd, [old, quick], leader)
    for node in lockd.nodes:
        expect(await lockd.entries(backend, node), [], why="nor does it come later")
    registered = await lockd.call(wire.register(backend, endpoint), lockd.own(old), node=old)
    expect(registered, ok(), why="control: a registration when all are quick")


@verifies(
    "TC-RM-07",
    part=2,
    isolation="disruptive",
    nodes=3,
    needs=("chaos.partition",),
    waits="cluster_leader_max + registry_equal_max",
)
async def test_c12_resets_under_churn(lockd: Lockd, faults: Faults, T: SpecTime) -> None:
    """Registrations come and go while connections break, one in twenty calls; at rest all registries are equal."""
    nodes, _ = await lockd.cluster()
    ways, dice = list(permutations(nodes, 2)), lockd.context.random
    there: dict[tuple[str, str], bool] = {}
    for turn in range(CALLS):
        backend, endpoint, node = f"island-{dice.randrange(4)}", nowhere(dice.randrange(1, 5)), dice.choice(nodes)
        adds = dice.random() < 0.5
        build = wire.register if adds else wire.unregister
        calling = lockd.beside(lockd.call(build(backend, endpoint), lockd.own(node), node=node))
        if turn % RESET_EVERY == 0:
            source, target = dice.choice(ways)
            async with faults.during("reset", f"{source}-{target}"):
                await asyncio.sleep(0)
        answer = await calling
        expect(answer, ok(), refused("tc_rm_replication_failed"), why="a change of the registry")
        if answer.ok:
            there[backend, endpoint] = adds
    settled = T.now()
    wanted = {f"island-{number}" for number in range(4)}

    async def equal() -> bool:
        seen = [await lockd.registered(node) for node in nodes]
        kept = [{name: sorted(one.endpoints) for name, one in each.items() if name in wanted} for each in seen]
        return kept[0] == kept[1] == kept[2]

    await lockd.comes(equal, "registry_equal_max", since=settled, what="equal registries")
    for (backend, endpoint), present in there.items():
        found = endpoint in await lockd.entries(backend, nodes[0])
        expect(found, present, why=f"{endpoint} of {backend}, by the last change that was accepted")
