"""Membership loop (seed: Membership loop): every third of the lease, to every member, every time."""

import pytest

from holdfast.check.finding import demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.client import Lockd
from holdfast.conformance.lockd.judge import names
from holdfast.conformance.lockd.membership import per_interval
from holdfast.conformance.lockd.spy import BROKEN
from holdfast.conformance.lockd.spy_cluster import spy_members
from holdfast.conformance.shared.stub import Reply


@verifies("TC-LOOP-01", isolation="quiet", nodes=1, waits="6*membership_interval")
async def test_the_node_announces_once_an_interval(lockd: Lockd) -> None:
    node = lockd.lone
    (spy,) = await spy_members(lockd, node, 1)
    await per_interval(spy, wire.ANNOUNCE, 5, sender=lockd.node_id(node))


@verifies("TC-LOOP-01", isolation="quiet", nodes=1, waits="two_membership_ttl")
async def test_a_running_node_is_always_in_its_own_list(lockd: Lockd, T: SpecTime) -> None:
    node, stamps = lockd.lone, []

    async def listed() -> None:
        answer = await lockd.call(wire.members(), node=node)
        demand(lockd.endpoint(node) in answer.endpoints, "the node in its own list", answer.describe())
        stamps.append(answer.updated_at)

    await lockd.throughout(listed, T.two_membership_ttl, "the node's own list")
    values = sorted(set(stamps))
    demand(stamps == sorted(stamps), "an updated_at_unix that grows", names(str(stamp) for stamp in stamps))
    lasted = "in two membership leases"
    demand(len(values) > 3, "more than three values of updated_at_unix", names(str(each) for each in values), lasted)


@verifies("TC-LOOP-01", part=2, isolation="disruptive", nodes=1, waits="self_listed_max")
async def test_a_fresh_node_lists_itself_at_once(lockd: Lockd) -> None:
    node = lockd.lone
    await lockd.restart(node)

    async def listed() -> bool:
        return lockd.endpoint(node) in await lockd.members(node)

    await lockd.comes(listed, "self_listed_max", what="the node in its own list")


@verifies("TC-LOOP-01", part=3, isolation="quiet", waits="cluster_leader_max + two_membership_ttl")
async def test_no_live_node_drops_out_of_any_list(lockd: Lockd, T: SpecTime) -> None:
    nodes, _ = await lockd.cluster()
    wanted = names(sorted(lockd.endpoint(node) for node in nodes))

    async def all_listed() -> None:
        for node in nodes:
            expect(names(sorted(await lockd.members(node))), wanted, why=f"the list of {node}")

    await lockd.throughout(all_listed, T.two_membership_ttl, "all lists", every=T.renew_interval / 5)


@pytest.mark.parametrize("trouble", ["none", "refuses", "hangs up"])
@verifies("TC-LOOP-02", isolation="quiet", nodes=1, waits="5*membership_interval")
async def test_every_member_gets_the_announce_whatever_another_does(lockd: Lockd, trouble: str) -> None:
    node = lockd.lone
    first, second = await spy_members(lockd, node, 2)
    if trouble != "none":
        first.on(wire.ANNOUNCE, BROKEN if trouble == "refuses" else Reply(hangs_up=True))
    calls = await per_interval(second, wire.ANNOUNCE, 3)
    demand(first.got(wire.ANNOUNCE), f"an announce at {first.name}, which is first in sort order", "none")
    for call in (*calls, *first.got(wire.ANNOUNCE)):
        call.comes_from(lockd.node_id(node), "the certificate of the fan-out")
        call.says({"self_endpoint": lockd.endpoint(node)}, "the announce")


@verifies("TC-LOOP-02", part=2, isolation="disruptive", waits="converge_max")
async def test_all_lists_are_equal_soon_after_the_last_start(lockd: Lockd) -> None:
    for node in lockd.nodes:
        await lockd.restart(node)
    wanted = sorted(lockd.endpoint(node) for node in lockd.nodes)

    async def equal() -> bool:
        return all([sorted(await lockd.members(node)) == wanted for node in lockd.nodes])

    await lockd.comes(equal, "converge_max", what="equal lists on all nodes")
