"""Terms, votes and the observed leader (seed: Terms and leases; Observed leader)."""

import time
from dataclasses import replace
from functools import partial

import pytest

from holdfast.check.finding import Finding, Inconclusive, demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.check.x509 import CLIENT_AUTH
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.client import Lockd
from holdfast.conformance.lockd.judge import demand_none, no_other_leader, same_leader, shown, told
from holdfast.conformance.lockd.spy import Call, Spy, spies
from holdfast.conformance.lockd.spy_cluster import leaderless, spy_leader, spy_members, stepped_down
from holdfast.conformance.lockd.views import two_leaders
from holdfast.conformance.lockd.wire import Leader, no_vote, refused
from holdfast.conformance.shared.stub import Reply

# The terms that spies report; a leader that lost its quorum may ask for its old, lower term again.
LOW, HIGH = 7, 1000


def _is_a_candidacy(call: Call) -> bool:
    return call.term > LOW


@pytest.mark.parametrize("highest", ["first", "last"])
@verifies("TC-ELECT-01", isolation="quiet", nodes=1, waits="3*lease_settled_max")
async def test_a_candidate_asks_everybody_and_goes_one_above(lockd: Lockd, highest: str) -> None:
    node, pair = lockd.lone, await spies(lockd, 2)
    await lockd.leads(node)
    for spy, term in zip(pair, (HIGH, LOW) if highest == "first" else (LOW, HIGH), strict=True):
        spy.report_term(term)
        spy.refuse_votes()
        await spy.join(node)
    # The row sets no time for it: the old lease has to end first, and a candidate may wait a little.
    waits = partial(Spy.receives, path=wire.ACQUIRE, bound="lease_settled_max", where=_is_a_candidacy, judged=False)
    calls = [await waits(spy) for spy in pair]
    # After a failed round, the node's own term may be the highest.
    first = min(calls, key=lambda call: call.term)
    first.says({"term": HIGH + 1}, "one above the highest term that a peer reported")
    for spy, call in zip(pair, calls, strict=True):
        asked = [each for each in spy.got(wire.LEADER) if each.at <= call.at]
        demand(asked, f"{spy.name} to be asked for its term before its vote", call.describe())


@verifies("TC-ELECT-02", isolation="quiet", nodes=1, waits="4*lease_settled_max")
async def test_vote_requests_go_to_all_peers(lockd: Lockd, T: SpecTime) -> None:
    node, began = lockd.lone, T.now()
    made = await spy_members(lockd, node, 3, grant=False)
    await lockd.without_leader(node)
    for spy in made:
        await spy.receives(wire.ACQUIRE, "lease_settled_max", since=began, judged=False, what="a vote request")
    leader = await _wins_a_round_of_grants(lockd, node, made)
    for spy in made:
        calls = _of_the_winning_round(spy, leader.term)
        demand(calls, f"a vote request for term {leader.term}, which won, at {spy.name}", told(spy.got(wire.ACQUIRE)))
        _vote_request(lockd, node, calls[0], leader)


async def _wins_a_round_of_grants(lockd: Lockd, node: str, made: list[Spy]) -> Leader:
    """Lets the node win a round in which every peer grants from the first request on; returns its lease.

    In a round with a refusal in it a node that stops at the majority would have asked everybody as well.
    """
    for _ in range(3):
        since = lockd.T.now()
        for spy in made:
            spy.refuse_votes()
        led = await stepped_down(lockd, node, made, since)
        granting = lockd.T.now()
        for spy in made:
            spy.grant_votes()
        leader, _ = await lockd.leads(node, above=led)
        requests = [call for spy in made for call in _of_the_winning_round(spy, leader.term)]
        if all(call.at > granting.hi for call in requests):
            return leader
    raise Inconclusive("every round that the node won had begun while its peers still refused")


@verifies("TC-ELECT-02", isolation="quiet", nodes=1, waits="4*lease_settled_max")
async def test_the_nodes_own_slot_is_taken_during_its_round(lockd: Lockd, T: SpecTime) -> None:
    node, began = lockd.lone, T.now()
    made = await spy_members(lockd, node, 3, grant=False)
    await stepped_down(lockd, node, made, began)
    # Three of four are a quorum, so while two votes are held back nothing is decided.
    for spy in made[:2]:
        spy.hold_votes(T.held_answer)
    made[2].grant_votes()
    held = await made[0].receives(wire.ACQUIRE, "lease_settled_max", since=T.now(), what="a vote request")
    rival = await lockd.call(wire.acquire("rival", lockd.url(node), held.term, int(T.leader_ttl * 1000)), node=node)
    if rival.sent > held.at + T.held_answer:
        raise Inconclusive("the suite asked after the vote was over")
    expect(rival, *no_vote(), why="the node's own slot is taken during its round")


def _of_the_winning_round(spy: Spy, term: int) -> list[Call]:
    """Returns the vote requests of this term since its last release: earlier ones belong to failed rounds."""
    last_release = max((call.at for call in spy.got(wire.RELEASE) if call.term == term), default=0.0)
    return [call for call in spy.got(wire.ACQUIRE) if call.term == term and call.at > last_release]


def _vote_request(lockd: Lockd, node: str, call: Call, leader: Leader) -> None:
    wanted: dict[str, object] = {"candidate_id": leader.id, "candidate_endpoint": lockd.endpoint(node)}
    wanted["ttl_ms"] = round(lockd.T.leader_ttl * 1000)
    call.says(wanted, "the vote request")
    demand(CLIENT_AUTH in call.usages, "a vote request under a certificate with clientAuth usage", call.describe())
    roles = ("spiffe://lockd/tc/", "spiffe://lockd/server/")
    named = any(uri.lower().startswith(roles) for uri in call.uris)
    demand(named, "a vote request under a coordinator's or a server's URI", call.describe())


@pytest.mark.parametrize("n", [2, 3, 4, 5])
@verifies("TC-ELECT-03", isolation="quiet", nodes=1, waits="3*lease_settled_max + two_leader_ttl")
async def test_a_quorum_elects_and_one_grant_fewer_does_not(lockd: Lockd, T: SpecTime, n: int) -> None:
    node, made = await leaderless(lockd, n - 1)
    needed = T.count(f"quorum_of_{n}") - 1
    for spy in made[: needed - 1]:
        spy.grant_votes()

    async def nobody_leads() -> None:
        leader = await lockd.lasting_leader(node)
        demand(leader is None, f"no leader with {needed} of {n} grants, its own included", shown(leader))
        answer = await lockd.call(wire.decide(lockd.txn(), "commit"), node=node)
        expect(answer, refused("tc_unavailable"), why="a decision without a leader")

    await lockd.throughout(nobody_leads, T.two_leader_ttl, "an election without a quorum")
    since = T.now()
    made[needed - 1].grant_votes()
    leader, _ = await lockd.leads(node)
    calls = made[needed - 1].got(wire.ACQUIRE, since=since)
    demand(any(call.term == leader.term for call in calls), f"a vote request for term {leader.term}", told(calls))


@verifies("TC-ELECT-03", isolation="quiet", nodes=1, waits="lease_settled_max")
async def test_a_lone_node_is_its_own_quorum(lockd: Lockd, T: SpecTime) -> None:
    expect(T.count("quorum_of_1"), 1, why="the quorum of one member")
    await lockd.leads(lockd.lone)
    await lockd.decides(lockd.lone, "the lone leader decides", owner="TC-ELECT-03")


@verifies("TC-ELECT-04", isolation="quiet", nodes=1, waits="3*lease_settled_max")
async def test_a_vote_is_no_leadership(lockd: Lockd, T: SpecTime) -> None:
    node, _ = await leaderless(lockd)
    granted = await lockd.vote("x", 3000, int(T.probe_lease_ttl * 1000), node)

    async def not_shown() -> None:
        seen = await lockd.leader(node)
        demand(seen.leader.id != "x", "no leader x, which has got a mere vote", seen.describe())

    left = granted.expires_at / 1000 - time.time()
    await lockd.throughout(not_shown, max(left, T.clock_slack), "the vote's lease", every=T.clock_slack / 5)


@verifies("TC-ELECT-04", isolation="quiet", nodes=1, waits="4*lease_settled_max")
async def test_the_next_leadership_has_a_higher_term(lockd: Lockd) -> None:
    node = lockd.lone
    (spy,) = await spy_members(lockd, node, 1)
    before, _ = await lockd.leads(node)
    lost = lockd.T.now()
    spy.refuse_votes()
    await stepped_down(lockd, node, [spy], lost)
    since = lockd.T.now()
    spy.grant_votes()
    after, _ = await lockd.leads(node, above=0)
    demand(after.term > before.term, f"a term above {before.term}", after.describe())
    asked = spy.got(wire.ACQUIRE, since=since)
    demand(any(call.term == after.term for call in asked), f"a vote request for term {after.term}", told(asked))


@verifies("TC-ELECT-04", part=2, isolation="quiet", waits="cluster_leader_max + four_leader_ttl")
async def test_a_converged_cluster_keeps_its_leader(lockd: Lockd, T: SpecTime) -> None:
    nodes, leader = await lockd.cluster()

    async def same() -> None:
        for node in nodes:
            seen = await lockd.valid_leader(node)
            same_leader(seen, leader, f"the leader that {node} shows")
            expect(seen and seen.endpoint, leader.endpoint, why=f"the leader's endpoint that {node} shows")

    await lockd.throughout(same, T.four_leader_ttl, "one leader on all nodes", every=T.renew_interval / 10)


@verifies(
    "TC-ELECT-04",
    part=3,
    isolation="disruptive",
    waits="cluster_leader_max + leader_changes*(cluster_leader_max + 2*lease_settled_max)",
)
async def test_terms_rise_with_every_change(lockd: Lockd, T: SpecTime) -> None:
    nodes, leader = await lockd.cluster()
    for change in range(T.count("leader_changes")):
        await T.sleep(T.lease_silent_max, "whatever was voted for with other lists to run out")
        old = lockd.at(leader.endpoint)
        match change % 3:
            case 0:
                await lockd.kill(old)
            case 1:
                await lockd.goes(old)
            case _:
                await lockd.term(old, T.exit_max)
        rest, previous = lockd.others(old), leader

        async def successor(rest: list[str] = rest, term: int = previous.term) -> Leader | None:
            return await lockd.one_leader(*rest, above=term)

        leader, _ = await T.until(successor, give_up=T.never("lease_settled_max"), what="a successor")
        await lockd.restart(old)
        leader, _ = await lockd.agreed(*nodes, above=previous.term)
        if rivals := lockd.views.rivals():
            raise two_leaders(*rivals)


@verifies("TC-ELECT-07", isolation="quiet", nodes=1, waits="5*lease_settled_max")
async def test_a_crashed_leader_is_replaced_after_its_lease(lockd: Lockd, T: SpecTime) -> None:
    node, (first, second) = await spy_leader(lockd, 1000, count=2)
    second.grant_votes()
    await T.sleep(T.renew_interval, "some renewals")
    lease = await first.stop_leading()
    first.fall_silent()
    closed = await first.close()
    leader, seen = await lockd.leads(node, above=1000, owner="TC-ELECT-07")
    _not_early(lockd, second.got(wire.ACQUIRE, since=closed), lease)
    await lockd.lists(node, first.endpoint, why="a quorum is there while the dead member is still listed")
    T.at_most("lease_settled_max", since=closed, seen=seen, what=f"the new leader at term {leader.term}")
    await lockd.decides(node, "decisions work again", owner="TC-ELECT-07")


def _not_early(lockd: Lockd, calls: list[Call], lease: Leader) -> None:
    """Raises if a call came before the lease ended, by more than the node's clock and ours may differ."""
    end = lockd.moment_of(lease.expires_at).lo - lockd.T.clock_slack
    demand_none([call for call in calls if call.at < end], "no vote request while the lease is live")


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
        await lockd.decides(node, f"a decision at {node}", owner="TC-ELECT-07")


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
    since, observed = T.now(), Leader(spy.node_id, spy.endpoint, 50)

    async def stays() -> None:
        no_other_leader(await lockd.valid_leader(node), observed, "its lease is valid, and the peer reports it")

    await lockd.throughout(stays, T.two_leader_ttl, "the observed leader")
    await lockd.comes(follows, "lease_settled_max", what="the leader that the peer still reports")
    demand_none(spy.got(wire.ACQUIRE, since=since), "no vote request beside a valid leader")
    spy.report(Leader)
    await _resumes(lockd, spy, expiries)


async def _resumes(lockd: Lockd, spy: Spy, expiries: list[int]) -> None:
    """Waits for the next election and judges that it comes after the last reported lease has ended."""
    T, stopped = lockd.T, lockd.T.now()
    expiry = lockd.moment_of(expiries[-1])
    call = await spy.receives(wire.ACQUIRE, "lease_settled_max", since=stopped, times=2, what="an election")
    _not_early(lockd, [call], Leader(expires_at=expiries[-1]))
    call.says({"term": 51}, "one above the observed term")
    since = Moment(min(expiry.lo, call.at), expiry.hi)
    T.at_most("reelect_max", since=since, seen=call.moment, what="the next election")


async def _leading_above_a_thousand(lockd: Lockd, node: str) -> tuple[Spy, Leader]:
    """Makes the node lead at term 1001 or higher; returns the spy that is its seed and only peer, and its lease."""
    (spy,) = await spies(lockd, 1)
    spy.report_term(HIGH)
    spy.refuse_votes()
    since = await lockd.restart(node, join=f"{lockd.url(node)},{spy.endpoint}")
    await spy.join(node)
    await stepped_down(lockd, node, [spy], since)
    spy.grant_votes()
    leader, _ = await lockd.leads(node, above=HIGH, owner="TC-ELECT-01")
    return spy, leader


@verifies("TC-ELECT-09", isolation="disruptive", nodes=1, waits="5*lease_settled_max + adopt_max")
async def test_a_node_adopts_its_own_valid_lease(lockd: Lockd, T: SpecTime) -> None:
    node = lockd.lone
    spy, leader = await _leading_above_a_thousand(lockd, node)
    ttl = int(T.leader_ttl * 1000)
    spy.report(lambda: replace(leader, expires_at=int(time.time() * 1000) + ttl))
    # A peer that reports the lease as valid renews it too, however long the restart takes.
    spy.on(wire.RENEW, Reply(200, {"renewed": True, "leader_id": leader.id, "term": leader.term}))
    await lockd.kill(node)
    since = await lockd.restart(node)
    await spy.announce(node)

    async def adopted() -> Leader | None:
        return await lockd.valid_leader(node)

    seen, _ = await lockd.comes(adopted, "adopt_max", what="the node to take up its own lease")
    same_leader(seen, leader, "the adopted lease")
    renewal = await spy.receives(wire.RENEW, "lease_settled_max", since=since)
    renewal.says({"term": leader.term}, "the term of the first renewal")
    early = [call for call in spy.got(wire.ACQUIRE, since=since) if call.at < renewal.at]
    demand_none(early, "no vote request before the adopted lease is renewed")


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
        fresh = seen is None or seen.term != leader.term
        demand(fresh, f"no leader in term {leader.term}, whose lease has lapsed", shown(seen))

    await lockd.throughout(not_at_the_old_term, T.two_leader_ttl, "the lapsed lease")
