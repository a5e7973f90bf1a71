"""Periodic registration (seed: Periodic RM registration): every server, at every member, for as long as it runs."""

from functools import partial

from holdfast.check.finding import demand
from holdfast.check.verifies import verifies
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.client import Lockd
from holdfast.conformance.lockd.judge import told
from holdfast.conformance.lockd.membership import per_interval, store_fails
from holdfast.conformance.lockd.spy import BROKEN, Call, spies
from holdfast.conformance.lockd.spy_cluster import spy_members
from holdfast.conformance.shared.wire import moment


def _is_own(lockd: Lockd, call: Call) -> bool:
    return not call.marked(lockd.dialect.replica_header)


@verifies("TC-RM-01", isolation="quiet", nodes=1, waits="5*rm_register_period")
async def test_a_server_keeps_registering_at_every_member(lockd: Lockd) -> None:
    node = lockd.lone
    pair = await spy_members(lockd, node, 2)
    own_ones = partial(_is_own, lockd)
    regular = partial(per_interval, path=wire.REGISTER, count=3, period="rm_register_period", where=own_ones)
    await lockd.parallel([partial(regular, spy) for spy in pair])
    mine = await lockd.backend_of(node)
    for spy in pair:
        own = [call for call in spy.got(wire.REGISTER) if _is_own(lockd, call)]
        demand(len(own) >= 3, f"three registrations at {spy.name}", told(own))
        for call in own:
            call.says({"endpoint": lockd.endpoint(node), "backend_hash": mine}, "a registration of the node itself")
            call.comes_from(lockd.node_id(node), "the certificate of a registration")


@verifies("TC-RM-01", isolation="quiet", nodes=1, waits="4*rm_register_period")
async def test_a_failed_registration_does_not_end_the_series(lockd: Lockd) -> None:
    node = lockd.lone
    (spy,) = await spies(lockd, 1)
    spy.on(wire.REGISTER, BROKEN)
    await spy.join(node)
    own = partial(_is_own, lockd)
    await spy.receives(wire.REGISTER, "rm_listed_max", where=own, what="the registration that fails")
    spy.script.clear()
    since = lockd.T.now()
    await spy.receives(
        wire.REGISTER, "rm_listed_max", since=since, where=own, count=2, times=2, what="further registrations"
    )


@verifies("TC-RM-01", part=2, isolation="disruptive", waits="cluster_leader_max + rm_refill_max")
async def test_a_coordinator_that_lost_its_registry_is_refilled(lockd: Lockd) -> None:
    nodes, _ = await lockd.cluster()
    a, b, c = nodes[:3]
    await lockd.kill(b)
    started = await lockd.restart(b)

    async def refilled() -> bool:
        found = {end for backend in (await lockd.registered(b)).values() for end in backend.endpoints}
        return {lockd.endpoint(a), lockd.endpoint(c)} <= found

    await lockd.comes(refilled, "rm_refill_max", since=started, what="both other nodes in the registry")


@verifies("TC-RM-02", isolation="disruptive", nodes=1, waits="rm_listed_max + rm_fallback_max")
async def test_join_endpoints_get_the_registration_when_nobody_is_a_member(lockd: Lockd) -> None:
    node, (spy,) = lockd.lone, await spies(lockd, 1)
    await lockd.restart(node, join=f"{lockd.url(node)},{spy.endpoint}")
    await lockd.backend_of(node)
    left = await lockd.goes(node)
    with lockd.context.arranging("TC-LEAVE-01"):
        await lockd.lacks(node, lockd.endpoint(node), why="control: the list is empty")
    call = await spy.receives(wire.REGISTER, "rm_fallback_max", since=moment(left))
    call.says({"endpoint": lockd.endpoint(node)}, "the registration at the join endpoint")


@verifies("TC-RM-02", part=2, isolation="disruptive", nodes=1, waits="rm_listed_max + rm_fallback_max")
async def test_join_endpoints_get_the_registration_while_the_list_cannot_be_read(lockd: Lockd) -> None:
    node, (seed, member) = lockd.lone, await spies(lockd, 2)
    with store_fails(lockd) as fault:
        await lockd.restart(node, join=f"{lockd.url(node)},{seed.endpoint}", fault_hook=str(fault.file))
        await member.join(node)
        await member.awaits("TC-RM-01", wire.REGISTER, "rm_listed_max", what="control: the member gets registrations")
        fault.begin()
        await seed.receives(wire.REGISTER, "rm_fallback_max", since=lockd.T.now())
