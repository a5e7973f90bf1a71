"""Announce and active list (seed: Announce; Active list)."""

from holdfast.check.finding import Inconclusive, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.client import Lockd
from holdfast.conformance.lockd.membership import nowhere
from holdfast.conformance.lockd.wire import ok, refused
from holdfast.conformance.shared.wire import Request, moment


@verifies("TC-MEMBER-01", isolation="quiet", nodes=1)
async def test_an_announce_stores_a_lease_and_needs_an_endpoint(lockd: Lockd) -> None:
    node, x = lockd.lone, lockd.authority.server(name="x")
    before = await lockd.members(node)
    for body in ({}, {"self_endpoint": ""}, {"self_endpoint": "  "}, None):
        answer = await lockd.call(Request("POST", wire.ANNOUNCE, body), x, node=node)
        expect(answer, refused("missing_self_endpoint"), why=f"body {body}")
        expect(await lockd.members(node), before, why="the list after a refused announce")
    answer = await lockd.member(x, nowhere(1), node)
    assert nowhere(1) in answer.endpoints, f"the answer lacks the new member: {answer.describe()}"
    for name in ("updated_at_unix", "expires_at_unix"):
        assert isinstance(answer.fields.get(name), int), f"{name} is missing: {answer.text[:200]}"
    assert nowhere(1) in await lockd.members(node), "200 without a stored lease"


@verifies("TC-MEMBER-02", isolation="quiet", nodes=1)
async def test_malformed_endpoints_are_refused(lockd: Lockd) -> None:
    node, x = lockd.lone, lockd.authority.server(name="x")
    before = await lockd.members(node)
    wrong = ("ftp://127.0.0.1:1", "127.0.0.1:1", "https://u@127.0.0.1:1")
    for endpoint in (*wrong, "https://127.0.0.1:1?x=1", "https://127.0.0.1:1#f"):
        expect(await lockd.call(wire.announce(endpoint), x, node=node), refused("invalid_self_endpoint"), why=endpoint)
        expect(await lockd.members(node), before, why="the list after a refused announce")
    await lockd.member(x, nowhere(1), node)


@verifies("TC-MEMBER-03", isolation="quiet", nodes=1, waits="membership_ttl + clock_slack")
async def test_a_lease_lasts_three_leader_ttls_from_the_last_announce(lockd: Lockd, T: SpecTime) -> None:
    node, x = lockd.lone, lockd.authority.server(name="x")
    first = await lockd.member(x, nowhere(1), node)
    expiry = lockd.moment_of(first.expires_at)
    T.at_least("membership_ttl", since=moment(first), seen=expiry, tolerance="clock_slack", what="the lease")
    T.at_most("membership_ttl", since=moment(first), seen=expiry, tolerance="clock_slack", what="the lease")
    length = (first.expires_at / 1000 - first.wall) / T.leader_ttl
    expect(round(length), T.count("membership_ttl_factor"), why="leader TTLs in a membership lease")
    await T.sleep_until(moment(first), T.announce_again, "a second announce")
    second = await lockd.member(x, nowhere(1), node)
    later = (second.expires_at - first.expires_at) / 1000 - (second.wall - first.wall)
    assert abs(later) <= T.clock_slack, f"the second expiry is off by {later:.2f} s from the time between the calls"
    await T.sleep_until(expiry, T.clock_slack, "the first expiry")
    look = await lockd.call(wire.members(), node=node)
    if look.received > lockd.moment_of(second.expires_at).lo:
        raise Inconclusive("the suite looked too late to see the renewed lease before its own end")
    assert nowhere(1) in look.endpoints, f"the renewed lease ended at its first expiry: {look.describe()}"


async def _crowd(lockd: Lockd, node: str, *ends: str) -> list[str]:
    for number, end in enumerate(ends):
        await lockd.member(lockd.authority.server(name=f"x{number}"), end, node)
    return await lockd.members(node)


@verifies("TC-MEMBER-04", isolation="quiet", nodes=1)
async def test_the_list_is_normalised_unique_and_sorted(lockd: Lockd) -> None:
    node = lockd.lone
    seen = await _crowd(lockd, node, f"{nowhere(2)}/", nowhere(2), nowhere(1))
    expect(seen, sorted({nowhere(1), nowhere(2), lockd.url(node)}), why="normalised, once each, in byte order")


@verifies("TC-MEMBER-04", isolation="quiet", nodes=1)
async def test_an_empty_list_is_an_array(lockd: Lockd) -> None:
    node = lockd.lone
    expect(await lockd.api_leave(node), ok(), why="a lone node leaves")
    answer = await lockd.call(wire.members(), node=node)
    expect(answer.fields.get("endpoints"), [], why="endpoints with nobody active")
    await lockd.come_back(node)
    answer = await lockd.call(wire.members(), node=node)
    expect(answer.fields.get("endpoints"), [lockd.url(node)], why="control: the node is back")


@verifies("TC-MEMBER-04", part=2, isolation="quiet", waits="cluster_leader_max + next_tick_max")
async def test_lists_do_not_depend_on_the_order_of_announces(lockd: Lockd) -> None:
    nodes, _ = await lockd.cluster()
    a, b = nodes[:2]
    settled = [await lockd.members(node) for node in nodes]
    assert all(each == settled[0] for each in settled), f"settled nodes differ: {settled}"
    wanted = sorted({nowhere(1), nowhere(2), *settled[0]})
    one, two, three = (lockd.authority.server(name=name) for name in ("x", "y", "z"))
    for node, order in ((a, (one, two, three)), (b, (three, two, one))):
        ends = {id(one): f"{nowhere(2)}/", id(two): nowhere(2), id(three): nowhere(1)}
        for who in order:
            await lockd.member(who, ends[id(who)], node)
        expect(await lockd.members(node), wanted, why=f"the list of {node}")


@verifies("TC-MEMBER-05", isolation="quiet", nodes=1, waits="membership_ttl + clock_slack")
async def test_a_lease_is_listed_until_its_expiry_and_not_after(lockd: Lockd, T: SpecTime) -> None:
    node = lockd.lone
    answer = await lockd.member(lockd.authority.server(name="x"), nowhere(1), node)
    expiry = lockd.moment_of(answer.expires_at)
    await T.sleep_until(expiry, -T.expiry_look, "almost the expiry")
    look = await lockd.call(wire.members(), node=node)
    if look.received > expiry.lo:
        raise Inconclusive("the suite looked too late to see the lease before its end")
    assert nowhere(1) in look.endpoints, "the lease is gone before its expiry"
    await T.sleep_until(expiry, T.clock_slack, "the expiry")
    assert nowhere(1) not in await lockd.members(node), "an expired lease is listed"


@verifies("TC-MEMBER-06", isolation="quiet", nodes=1)
async def test_a_shared_endpoint_stays_until_its_last_lease_goes(lockd: Lockd) -> None:
    node = lockd.lone
    for first_to_go in (0, 1):
        pair = [lockd.authority.server(name=name) for name in ("x", "y")]
        for who in pair:
            await lockd.member(who, nowhere(1), node)
        expect((await lockd.members(node)).count(nowhere(1)), 1, why="two leases of one endpoint, listed once")
        expect(await lockd.leave_as(pair[first_to_go], node), ok())
        assert nowhere(1) in await lockd.members(node), "the entry was removed with the first of two leases"
        expect(await lockd.leave_as(pair[1 - first_to_go], node), ok())
        assert nowhere(1) not in await lockd.members(node), "the entry is there without a lease"
