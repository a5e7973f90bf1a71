"""The voter's side of an election (seed: Terms and leases): what it grants, protects and refuses."""

from holdfast.check.finding import Inconclusive, demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.client import Lockd
from holdfast.conformance.lockd.spy_cluster import leaderless, spy_leader
from holdfast.conformance.lockd.wire import no_vote, ok
from holdfast.conformance.shared.wire import moment


@verifies("TC-ELECT-05", isolation="quiet", nodes=1, waits="3*lease_settled_max")
async def test_a_voter_protects_the_live_lease(lockd: Lockd, T: SpecTime) -> None:
    node, (spy,) = await spy_leader(lockd, 1000)
    ttl, me = int(T.leader_ttl * 1000), lockd.url(node)
    for request in (
        wire.acquire("x", me, 999, ttl),
        wire.acquire("x", me, 1001, ttl),
        wire.renew("x", 1000, ttl),
        wire.renew(spy.node_id, 999, ttl),
    ):
        expect(await lockd.call(request, node=node), *no_vote(), why=request.describe())
        seen = await lockd.leader(node)
        expect(seen, ok(leader_id=spy.node_id, leader_endpoint=spy.endpoint, term=1000), why="the live lease")
    answer = await lockd.call(wire.renew(spy.node_id, 1000, ttl), node=node)
    expect(answer, ok(renewed=True), why="control: the holder at its term")


@verifies("TC-ELECT-05", isolation="quiet", nodes=1, waits="3*lease_settled_max + 2*probe_lease_ttl")
async def test_after_expiry_only_a_higher_term_is_granted(lockd: Lockd, T: SpecTime) -> None:
    node, _ = await leaderless(lockd)
    ttl, me, term = int(T.probe_lease_ttl * 1000), lockd.url(node), 4000
    await lockd.vote("c", term, ttl, node)
    renewed = await lockd.call(wire.renew("c", term, ttl), node=node)
    with lockd.context.arranging("TC-ELECT-05"):
        expect(renewed, ok(renewed=True), why="the renewal of a vote")
    await T.sleep_until(lockd.moment_of(renewed.expires_at), T.clock_slack, "the lease to lapse")
    # The node's own candidacies at term + 1 pass through its slot, and then the refusal is that of their term.
    answer = await lockd.call(wire.renew("c", term, ttl), node=node)
    expect(answer, *no_vote(), why="a renewal of a lapsed lease")

    async def not_again() -> None:
        answer = await lockd.call(wire.acquire("y", me, term, ttl), node=node)
        expect(answer, *no_vote(), why="the same term after expiry")

    await lockd.throughout(not_again, T.probe_lease_ttl, "the same term after expiry")
    await lockd.vote("y", term + 1000, ttl, node)


@verifies("TC-ELECT-06", isolation="quiet", nodes=1, waits="3*lease_settled_max")
async def test_a_grant_states_the_lease_and_repeats(lockd: Lockd, T: SpecTime) -> None:
    node, _ = await leaderless(lockd)
    ttl, me = int(T.probe_lease_ttl * 1000), lockd.url(node)
    first = await lockd.vote("c", 5000, ttl, node)
    expect(first, ok(granted=True, leader_id="c", leader_endpoint=me, term=5000), why="the grant")
    expiry = lockd.moment_of(first.expires_at)
    T.at_least("probe_lease_ttl", since=moment(first), seen=expiry, tolerance="clock_slack", what="the granted lease")
    T.at_most("probe_lease_ttl", since=moment(first), seen=expiry, tolerance="clock_slack", what="the granted lease")
    await T.sleep(T.probe_lease_ttl / 10, "a later expiry to differ by more than a millisecond")
    again = await lockd.call(wire.acquire("c", me, 5000, ttl), node=node)
    if again.received > first.sent + T.probe_lease_ttl:
        raise Inconclusive("the repeated call came after the lease")
    expect(again, ok(granted=True), why="the same candidate at the same term")
    extended = again.expires_at > first.expires_at
    demand(extended, f"an expires_at after {first.expires_at}, that of the first grant", again.describe())
