"""Terms, votes and the observed leader (seed: Terms and leases; Observed leader)."""

import time

import pytest

from holdfast.check.finding import Finding, Inconclusive, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.check.x509 import CLIENT_AUTH
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.client import Lockd
from holdfast.conformance.lockd.spy import Call, Spy, spies
from holdfast.conformance.lockd.spy_cluster import leaderless, spy_leader, spy_members
from holdfast.conformance.lockd.wire import Leader, ok, refused
from holdfast.conformance.shared.wire import Request, moment


def _is_a_candidacy(call: Call) -> bool:
    return int(call.body.get("term", 0)) > 7


@pytest.mark.parametrize("highest", ["first", "last"])
@verifies("TC-ELECT-01", isolation="quiet", nodes=1, waits="3*lease_settled_max")
async def test_a_candidate_asks_everybody_and_goes_one_above(lockd: Lockd, highest: str) -> None:
    node, pair = lockd.lone, await spies(lockd, 2)
    await lockd.leads(node)
    for spy, term in zip(pair, (1000, 7) if highest == "first" else (7, 1000), strict=True):
        spy.report_term(term)
        spy.refuse_votes()
        await spy.join(node)
    # A leader that lost its quorum may ask for its old term again; a candidacy has a term of its own.
    calls = [await spy.receives(wire.ACQUIRE, "lease_settled_max", where=_is_a_candidacy) for spy in pair]
    # After a failed round, the node's own term may be the highest.
    first = min(int(call.body["term"]) for call in calls)
    expect(first, 1001, why="one above the highest term that a peer reported")
    for spy, call in zip(pair, calls, strict=True):
        asked = [each for each in spy.got(wire.LEADER) if each.at <= call.at]
        assert asked, f"{spy.identity.name} was asked for its vote, but not for its term"


@verifies("TC-ELECT-02", isolation="quiet", nodes=1, waits="4*lease_settled_max")
async def test_vote_requests_go_to_all_peers_and_to_the_node_itself(lockd: Lockd, T: SpecTime) -> None:
    node, made = await leaderless(lockd, 3)
    # Three of four are a quorum, so while two votes are held back nothing is decided.
    for spy in made[:2]:
        spy.hold_votes(T.held_answer)
    made[2].grant_votes()
    # The last renewal of the lost leadership may still ask for its old term; the next round may have begun already.
    since, last = T.now(), max((int(call.body.get("term", 0)) for call in made[0].got(wire.RENEW)), default=0)
    held = await made[0].receives(
        wire.ACQUIRE, "lease_settled_max", since=since, where=lambda call: int(call.body.get("term", 0)) > last
    )
    term = int(held.body.get("term", 0))
    rival = await lockd.call(wire.acquire("rival", lockd.url(node), term, int(T.leader_ttl * 1000)), node=node)
    if rival.sent > held.at + T.held_answer:
        raise Inconclusive("the suite asked after the vote was over")
    expect(rival, refused("tc_lease_active"), why="the node's own slot is taken during its round")
    for spy in made[:2]:
        spy.grant_votes()
    leader, _ = await lockd.leads(node, above=term - 1)
    for spy in made:
        calls = _of_the_winning_round(spy, leader.term)
        assert calls, f"{spy.identity.name} got no vote request of the winning round"
        _vote_request(lockd, node, calls[0], leader)


def _of_the_winning_round(spy: Spy, term: int) -> list[Call]:
    """Returns the vote requests of this term since its last release: earlier ones belong to failed rounds."""
    last_release = max((call.at for call in spy.got(wire.RELEASE) if call.body.get("term") == term), default=0.0)
    return [call for call in spy.got(wire.ACQUIRE) if call.body.get("term") == term and call.at > last_release]


def _vote_request(lockd: Lockd, node: str, call: Call, leader: Leader) -> None:
    wanted: dict[str, object] = {"candidate_id": leader.id, "candidate_endpoint": lockd.url(node)}
    wanted["ttl_ms"] = round(lockd.T.leader_ttl * 1000)
    expect({name: call.body.get(name) for name in wanted}, wanted, why="the vote request")
    assert CLIENT_AUTH in call.usages, "the certificate of the vote request has no clientAuth usage"
    roles = ("spiffe://lockd/tc/", "spiffe://lockd/server/")
    assert any(uri.startswith(roles) for uri in call.uris), f"the vote request came under {call.uris}"


@pytest.mark.parametrize("n", [2, 3, 4, 5])
@verifies("TC-ELECT-03", isolation="quiet", nodes=1, waits="3*lease_settled_max + two_leader_ttl")
async def test_a_quorum_elects_and_one_grant_fewer_does_not(lockd: Lockd, T: SpecTime, n: int) -> None:
    node, made = await leaderless(lockd, n - 1)
    needed = T.count(f"quorum_of_{n}") - 1
    for spy in made[: needed - 1]:
        spy.grant_votes()

    async def nobody_leads() -> None:
        leader = await lockd.valid_leader(node)
        assert leader is None, f"elected with {needed} of {n} grants, its own included: {leader.describe()}"
        answer = await lockd.call(wire.decide(lockd.txn(), "commit"), node=node)
        expect(answer, refused("tc_unavailable"), why="a decision without a leader")

    await lockd.throughout(nobody_leads, T.two_leader_ttl, "an election without a quorum")
    since = T.now()
    made[needed - 1].grant_votes()
    leader, _ = await lockd.leads(node)
    calls = made[needed - 1].got(wire.ACQUIRE, since=since)
    assert any(call.body.get("term") == leader.term for call in calls), f"no vote was asked for term {leader.term}"


@verifies("TC-ELECT-03", isolation="quiet", nodes=1, waits="lease_settled_max")
async def test_a_lone_node_is_its_own_quorum(lockd: Lockd, T: SpecTime) -> None:
    expect(T.count("quorum_of_1"), 1)
    await lockd.leads(lockd.lone)
    answer = await lockd.call(wire.decide(lockd.txn(), "commit"), node=lockd.lone)
    expect(answer, ok(state="commit"), why="the lone leader decides")


@verifies("TC-ELECT-04", isolation="quiet", nodes=1, waits="3*lease_settled_max")
async def test_a_vote_is_no_leadership(lockd: Lockd, T: SpecTime) -> None:
    node, _ = await leaderless(lockd)
    granted = await lockd.vote("x", 3000, int(T.probe_lease_ttl * 1000), node)

    async def not_shown() -> None:
        seen = await lockd.leader(node)
        assert seen.leader.id != "x", f"a mere vote is reported as leader: {seen.describe()}"

    left = granted.expires_at / 1000 - time.time()
    await lockd.throughout(not_shown, max(left, T.clock_slack), "the vote's lease", every=T.clock_slack / 5)


@verifies("TC-ELECT-04", isolation="quiet", nodes=1, waits="4*lease_settled_max")
async def test_the_next_leadership_has_a_higher_term(lockd: Lockd) -> None:
    node = lockd.lone
    (spy,) = await spy_members(lockd, node, 1)
    before, _ = await lockd.leads(node)
    spy.refuse_votes()
    await lockd.without_leader(node)
    since = lockd.T.now()
    spy.grant_votes()
    after, _ = await lockd.leads(node, above=0)
    assert after.term > before.term, f"term {after.term} after term {before.term}"
    won = [call.body.get("term") for call in spy.got(wire.ACQUIRE, since=since)]
    assert after.term in won, f"the spy was asked for votes at {won}, not at {after.term}"


@verifies("TC-ELECT-04", part=2, isolation="quiet", waits="cluster_leader_max + four_leader_ttl")
async def test_a_converged_cluster_keeps_its_leader(lockd: Lockd, T: SpecTime) -> None:
    nodes, leader = await lockd.cluster()

    async def same() -> None:
        for node in nodes:
            seen = await lockd.valid_leader(node)
            wanted = (leader.id, leader.endpoint, leader.term)
            expect(seen and (seen.id, seen.endpoint, seen.term), wanted, why=f"the leader that {node} shows")

    await lockd.throughout(same, T.four_leader_ttl, "one leader on all nodes", every=T.renew_interval / 10)


@verifies(
    "TC-ELECT-04",
    part=3,
    isolation="disruptive",
    waits="cluster_leader_max + leader_changes*(cluster_leader_max + lease_settled_max)",
)
async def test_terms_rise_with_every_change(lockd: Lockd, T: SpecTime) -> None:
    nodes, leader = await lockd.cluster()
    seen: dict[int, set[str]] = {leader.term: {leader.id}}

    def note(_request: Request, answer: wire.Answer) -> None:
        if answer.has_leader:
            seen.setdefault(answer.leader.term, set()).add(answer.leader.id)

    lockd.listeners.append(note)
    for change in range(T.count("leader_changes")):
        old = lockd.at(leader.endpoint)
        match change % 3:
            case 0:
                await lockd.kill(old)
            case 1:
                expect(await lockd.api_leave(old), ok())
            case _:
                await lockd.term(old, T.exit_max)
        rest, previous = lockd.others(old), leader

        async def successor(rest: list[str] = rest, term: int = previous.term) -> Leader | None:
            return await lockd.one_leader(*rest, above=term)

        leader, _ = await T.until(successor, give_up=T.never("lease_settled_max"), what="a successor")
        await lockd.restart(old)
        leader, _ = await lockd.agreed(*nodes, above=previous.term)
    twice = {term: ids for term, ids in seen.items() if len(ids) > 1}
    assert not twice, f"two leaders in one term: {twice}"


@verifies("TC-ELECT-05", isolation="quiet", nodes=1, waits="3*lease_settled_max")
async def test_a_voter_protects_the_live_lease(lockd: Lockd, T: SpecTime) -> None:
    node, (spy,) = await spy_leader(lockd, 1000)
    ttl, me = int(T.leader_ttl * 1000), lockd.url(node)
    for request, legal in (
        (wire.acquire("x", me, 999, ttl), refused("tc_term_stale")),
        (wire.acquire("x", me, 1001, ttl), refused("tc_lease_active", leader_endpoint=spy.endpoint)),
        (wire.renew("x", 1000, ttl), refused("tc_lease_active")),
        (wire.renew(spy.node_id, 999, ttl), refused("tc_term_stale")),
    ):
        expect(await lockd.call(request, node=node), legal, why=request.describe())
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
    expect(renewed, ok(renewed=True))
    await T.sleep_until(lockd.moment_of(renewed.expires_at), T.clock_slack, "the lease to lapse")
    # The node's own candidacies at term + 1 pass through its slot, and then the refusal is that of their term.
    answer = await lockd.call(wire.renew("c", term, ttl), node=node)
    expect(answer, refused("tc_lease_active"), refused("tc_term_stale"), why="a renewal of a lapsed lease")

    async def not_again() -> None:
        answer = await lockd.call(wire.acquire("y", me, term, ttl), node=node)
        expect(answer, refused("tc_term_stale"), refused("tc_lease_active"), why="the same term after expiry")

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
    assert again.expires_at > first.expires_at, "the repeated grant does not extend the lease"


@verifies("TC-ELECT-07", isolation="quiet", nodes=1, waits="5*lease_settled_max")
async def test_a_crashed_leader_is_replaced_after_its_lease(lockd: Lockd, T: SpecTime) -> None:
    node, (first, second) = await spy_leader(lockd, 1000, count=2)
    second.grant_votes()
    await T.sleep(T.renew_interval, "some renewals")
    lease = await first.stop_leading()
    first.fall_silent()
    closed = await first.close()
    leader, seen = await lockd.leads(node, above=1000)
    early = [call for call in second.got(wire.ACQUIRE, since=closed) if call.at < lockd.moment_of(lease.expires_at).lo]
    _not_early(lockd, early, lease)
    assert first.endpoint in await lockd.members(node), "the node waited until the dead member had left the list"
    T.at_most("lease_settled_max", since=closed, seen=seen, what=f"the new leader at term {leader.term}")
    answer = await lockd.call(wire.decide(lockd.txn(), "commit"), node=node)
    expect(answer, ok(state="commit"), why="decisions work again")


def _not_early(lockd: Lockd, calls: list[Call], lease: Leader) -> None:
    """Raises if a call came before the lease ended, by more than the node's clock and ours may differ."""
    end = lockd.moment_of(lease.expires_at).lo - lockd.T.clock_slack
    early = [call.describe() for call in calls if call.at < end]
    assert not early, f"votes were asked for while the lease was live: {early}"


@verifies("TC-ELECT-07", part=2, isolation="disruptive", waits="cluster_leader_max + 2*lease_settled_max")
async def test_survivors_replace_a_killed_leader(lockd: Lockd, T: SpecTime) -> None:
    _, leader = await lockd.cluster()
    old = lockd.at(leader.endpoint)
    last = await lockd.valid_leader(old) or leader
    killed = await lockd.kill(old)
    survivors, known = lockd.others(old), [last.expires_at]

    async def replaced() -> Leader | None:
        for node in survivors:
            seen = await lockd.valid_leader(node)
            if seen and seen.id == leader.id:
                known.append(seen.expires_at)
            elif seen and time.time() < max(known) / 1000 - T.clock_slack:
                raise Finding(["the old leader until its lease ends"], seen.describe(), f"at {node}")
        return await lockd.one_leader(*survivors, above=leader.term)

    await lockd.comes(replaced, "lease_settled_max", since=killed, what="a new leader at a higher term")
    for node in survivors:
        answer = await lockd.call(wire.decide(lockd.txn(), "commit"), node=node)
        expect(answer, ok(state="commit"), why=f"a decision at {node}")


@verifies("TC-ELECT-08", isolation="quiet", nodes=1, waits="3*lease_settled_max + two_leader_ttl + reelect_max")
async def test_an_observed_leader_is_followed_until_it_lapses(lockd: Lockd, T: SpecTime) -> None:
    node, (spy,) = await leaderless(lockd)
    expiries = [0]

    def leading() -> Leader:
        expiries.append(int((time.time() + T.leader_ttl) * 1000))
        return Leader(spy.node_id, spy.endpoint, 50, expiries[-1])

    spy.report(leading)

    async def follows() -> bool:
        seen = await lockd.valid_leader(node)
        return seen is not None and (seen.endpoint, seen.term) == (spy.endpoint, 50)

    await lockd.comes(follows, "lease_settled_max", what="the leader that the peer reports")
    since = T.now()

    async def stays() -> None:
        assert await follows(), "the observed leader was dropped while its lease was valid"

    await lockd.throughout(stays, T.two_leader_ttl, "the observed leader")
    assert not spy.got(wire.ACQUIRE, since=since), "the node asks for votes beside a valid leader"
    spy.report(Leader)
    await _resumes(lockd, spy, expiries)


async def _resumes(lockd: Lockd, spy: Spy, expiries: list[int]) -> None:
    """Waits for the next election and judges that it comes after the last reported lease has ended."""
    T, stopped = lockd.T, lockd.T.now()
    expiry = lockd.moment_of(expiries[-1])
    call = await spy.receives(wire.ACQUIRE, "lease_settled_max", since=stopped, times=2, what="an election")
    _not_early(lockd, [call], Leader(expires_at=expiries[-1]))
    expect(call.body.get("term"), 51, why="one above the observed term")
    since = Moment(min(expiry.lo, call.at), expiry.hi)
    T.at_most("reelect_max", since=since, seen=call.moment, what="the next election")


async def _leading_above_a_thousand(lockd: Lockd, node: str) -> tuple[Spy, Leader]:
    """Makes the node lead at term 1001 or higher; returns the spy that is its seed and only peer, and its lease."""
    (spy,) = await spies(lockd, 1)
    spy.report_term(1000)
    spy.refuse_votes()
    await lockd.restart(node, join=f"{lockd.url(node)},{spy.endpoint}")
    await spy.join(node)
    await lockd.without_leader(node)
    spy.grant_votes()
    leader, _ = await lockd.leads(node, above=1000)
    return spy, leader


@verifies("TC-ELECT-09", isolation="disruptive", nodes=1, waits="5*lease_settled_max + adopt_max")
async def test_a_node_adopts_its_own_valid_lease(lockd: Lockd, T: SpecTime) -> None:
    node = lockd.lone
    spy, leader = await _leading_above_a_thousand(lockd, node)
    mine = Leader(leader.id, leader.endpoint, leader.term)
    spy.report(lambda: Leader(mine.id, mine.endpoint, mine.term, int((time.time() + T.leader_ttl) * 1000)))
    await lockd.kill(node)
    since = await lockd.restart(node)
    await spy.announce(node)

    async def adopted() -> Leader | None:
        return await lockd.valid_leader(node)

    seen, _ = await lockd.comes(adopted, "adopt_max", what="the node to take up its own lease")
    expect((seen.id, seen.term), (leader.id, leader.term), why="the adopted lease")
    renewal = await spy.receives(wire.RENEW, "lease_settled_max", since=since)
    expect(renewal.body.get("term"), leader.term, why="the term of the first renewal")
    early = [call.describe() for call in spy.got(wire.ACQUIRE, since=since) if call.at < renewal.at]
    assert not early, f"an election before the adopted lease was renewed: {early}"


@verifies("TC-ELECT-09", isolation="disruptive", nodes=1, waits="6*lease_settled_max")
async def test_a_node_does_not_adopt_a_lapsed_lease(lockd: Lockd, T: SpecTime) -> None:
    node = lockd.lone
    spy, leader = await _leading_above_a_thousand(lockd, node)
    past = Leader(leader.id, leader.endpoint, leader.term, int((time.time() - T.leader_ttl) * 1000))
    spy.report(lambda: past)
    await lockd.kill(node)
    await lockd.restart(node)
    await spy.announce(node)

    async def not_at_the_old_term() -> None:
        seen = await lockd.valid_leader(node)
        assert seen is None or seen.term != leader.term, f"a lapsed lease was adopted: {seen.describe()}"

    await lockd.throughout(not_at_the_old_term, T.two_leader_ttl, "the lapsed lease")
