"""Announce and active list (seed: Announce; Active list)."""

import json

from holdfast.check.finding import Inconclusive, demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.client import Lockd
from holdfast.conformance.lockd.endpoints import canonical
from holdfast.conformance.lockd.judge import names
from holdfast.conformance.lockd.membership import nowhere
from holdfast.conformance.lockd.wire import ok, refused
from holdfast.conformance.shared.wire import Request, moment


@verifies("TC-MEMBER-01", isolation="quiet", nodes=1)
async def test_an_announce_stores_a_lease_and_needs_an_endpoint(lockd: Lockd) -> None:
    node, x = lockd.lone, lockd.authority.server(name="x")
    before = names(await lockd.members(node))
    for body in ({}, {"self_endpoint": ""}, {"self_endpoint": "  "}, None):
        answer = await lockd.call(Request("POST", wire.ANNOUNCE, body), x, node=node)
        expect(answer, refused("missing_self_endpoint"), why=f"the body {json.dumps(body)}")
        expect(names(await lockd.members(node)), before, why="the list after a refused announce")
    answer = await lockd.member(x, nowhere(1), node)
    demand(nowhere(1) in answer.endpoints, f"an answer that lists {nowhere(1)}", answer.describe())
    for name in ("updated_at_unix", "expires_at_unix"):
        demand(wire.number(answer.fields.get(name)), f"an answer with {name}", answer.text)
    await lockd.lists(node, nowhere(1), why="its announce was accepted")


@verifies("TC-MEMBER-02", isolation="quiet", nodes=1)
async def test_malformed_endpoints_are_refused(lockd: Lockd) -> None:
    node, x = lockd.lone, lockd.authority.server(name="x")
    before = names(await lockd.members(node))
    wrong = ("ftp://127.0.0.1:1", "127.0.0.1:1", "https://u@127.0.0.1:1")
    for endpoint in (*wrong, "https://127.0.0.1:1?x=1", "https://127.0.0.1:1#f"):
        answer = await lockd.call(wire.announce(endpoint), x, node=node)
        with lockd.context.collect():
            expect(answer, refused("invalid_self_endpoint"), why=endpoint)
            expect(names(await lockd.members(node)), before, why="the list after a refused announce")
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
    apart = second.wall - first.wall
    later = (second.expires_at - first.expires_at) / 1000
    near = abs(later - apart) <= T.clock_slack
    demand(near, f"an expiry about {apart:.2f} s after the first one, as the calls", f"one {later:.2f} s after it")
    await T.sleep_until(expiry, T.clock_slack, "the first expiry")
    look = await lockd.call(wire.members(), node=node)
    if look.received > lockd.moment_of(second.expires_at).lo:
        raise Inconclusive("the suite looked too late to see the renewed lease before its own end")
    demand(nowhere(1) in look.endpoints, f"{nowhere(1)}, whose lease was renewed", look.describe())


def _as_listed(answer: wire.Answer) -> list[str]:
    """Returns the endpoints of a list exactly as they are spelt: their normal form is what is judged here."""
    return [str(each) for each in answer.fields.get("endpoints") or []]


async def _spelt(lockd: Lockd, node: str) -> list[str]:
    answer = await lockd.call(wire.members(), node=node)
    expect(answer, ok(), why="the member list")
    return _as_listed(answer)


@verifies("TC-MEMBER-04", isolation="quiet", nodes=1)
async def test_the_list_is_normalised_unique_and_sorted(lockd: Lockd) -> None:
    node = lockd.lone
    for number, end in enumerate((f"{nowhere(2)}/", nowhere(2), nowhere(1))):
        await lockd.member(lockd.authority.server(name=f"x{number}"), end, node)
    seen = await _spelt(lockd, node)
    slashed = [end for end in seen if end.endswith("/")]
    demand(not slashed, "endpoints without a slash at their end", names(seen))
    demand(seen == sorted(seen), "endpoints in byte order", names(seen))
    wanted = sorted({nowhere(1), nowhere(2), lockd.endpoint(node)})
    expect(names(sorted(canonical(end) for end in seen)), names(wanted), why="once each")


@verifies("TC-MEMBER-04", isolation="quiet", nodes=1)
async def test_an_empty_list_is_an_array(lockd: Lockd) -> None:
    node = lockd.lone
    await lockd.goes(node)
    answer = await lockd.call(wire.members(), node=node)
    expect(answer.fields.get("endpoints"), [], why="endpoints with nobody active")
    await lockd.returns(node)
    answer = await lockd.call(wire.members(), node=node)
    expect(names(answer.endpoints), lockd.endpoint(node), why="control: the node is back")


@verifies("TC-MEMBER-04", part=2, isolation="quiet", waits="cluster_leader_max + next_tick_max")
async def test_lists_do_not_depend_on_the_order_of_announces(lockd: Lockd) -> None:
    nodes, _ = await lockd.cluster()
    a, b = nodes[:2]
    settled = [await _spelt(lockd, node) for node in nodes]
    for node, seen in zip(nodes, settled, strict=True):
        expect(names(seen), names(settled[0]), why=f"the list of {node}, as that of {nodes[0]}")
    wanted = names(sorted({nowhere(1), nowhere(2), *settled[0]}))
    one, two, three = (lockd.authority.server(name=name) for name in ("x", "y", "z"))
    for node, order in ((a, (one, two, three)), (b, (three, two, one))):
        ends = {id(one): f"{nowhere(2)}/", id(two): nowhere(2), id(three): nowhere(1)}
        for who in order:
            await lockd.member(who, ends[id(who)], node)
        expect(names(await _spelt(lockd, node)), wanted, why=f"the list of {node}")


@verifies("TC-MEMBER-05", isolation="quiet", nodes=1, waits="membership_ttl + clock_slack")
async def test_a_lease_is_listed_until_its_expiry_and_not_after(lockd: Lockd, T: SpecTime) -> None:
    node = lockd.lone
    answer = await lockd.member(lockd.authority.server(name="x"), nowhere(1), node)
    expiry = lockd.moment_of(answer.expires_at)
    await T.sleep_until(expiry, -T.expiry_look, "almost the expiry")
    look = await lockd.call(wire.members(), node=node)
    if look.received > expiry.lo:
        raise Inconclusive("the suite looked too late to see the lease before its end")
    demand(nowhere(1) in look.endpoints, f"{nowhere(1)} until its lease ends", look.describe())
    await T.sleep_until(expiry, T.clock_slack, "the expiry")
    await lockd.lacks(node, nowhere(1), why="its lease has ended")


@verifies("TC-MEMBER-06", isolation="quiet", nodes=1)
async def test_a_shared_endpoint_stays_until_its_last_lease_goes(lockd: Lockd) -> None:
    node = lockd.lone
    for first_to_go in (0, 1):
        pair = [lockd.authority.server(name=name) for name in ("x", "y")]
        for who in pair:
            await lockd.member(who, nowhere(1), node)
        seen = await lockd.members(node)
        demand(seen.count(nowhere(1)) == 1, f"{nowhere(1)} once, for two leases", names(seen))
        await lockd.arrange("TC-LEAVE-01", wire.leave(lockd.dialect.guard), pair[first_to_go], node=node)
        await lockd.lists(node, nowhere(1), why="the other of its two leases lives on")
        await lockd.arrange("TC-LEAVE-01", wire.leave(lockd.dialect.guard), pair[1 - first_to_go], node=node)
        await lockd.lacks(node, nowhere(1), why="both of its leases are gone")
