"""Whole-system invariants (seed: Failure Handling and Invariants): fixed periods, equal views after churn."""

from collections.abc import Callable

from holdfast.check.finding import expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.client import Lockd
from holdfast.conformance.lockd.judge import names
from holdfast.conformance.lockd.membership import nowhere, per_interval
from holdfast.conformance.lockd.spy import BROKEN, Call, spies
from holdfast.conformance.lockd.spy_cluster import stepped_down
from holdfast.conformance.lockd.wire import refused
from holdfast.conformance.shared.wire import moment


@verifies("TC-INV-01", isolation="disruptive", nodes=1, waits="2*lease_settled_max + 6*membership_interval")
async def test_a_start_option_does_not_change_the_rules(lockd: Lockd, T: SpecTime) -> None:
    node, (spy,) = lockd.lone, await spies(lockd, 1)
    await lockd.restart(node, join=lockd.url(node), tc_disable_auth="true")
    await spy.join(node)
    leader, _ = await lockd.leads(node)
    lease = await spy.announce(node)
    expiry = lockd.moment_of(lease.expires_at)
    T.at_least("membership_ttl", since=moment(lease), seen=expiry, tolerance="clock_slack", what="the lease")
    T.at_most("membership_ttl", since=moment(lease), seen=expiry, tolerance="clock_slack", what="the lease")
    ticks = await per_interval(spy, wire.ANNOUNCE, 3)
    _share(ticks, T.membership_ttl, T.count("membership_ticks_per_ttl"), "ticks in a membership lease")
    renewals = await per_interval(spy, wire.RENEW, 3, period="renew_interval", tolerance="renew_tolerance_percent")
    _share(renewals, T.leader_ttl, T.count("renewals_per_leader_ttl"), "renewals in a leader lease")

    spy.on(wire.LEADER, BROKEN)
    answer = await lockd.call(wire.register("h1", nowhere(1)), lockd.authority.server(name="x"), node=node)
    expect(answer, refused("tc_rm_replication_failed"), why="the probe fails")
    expect(names(await lockd.entries("h1", node)), names([]), why="nothing is left of the failed register")
    since = T.now()
    spy.script.clear()
    spy.refuse_votes()
    await stepped_down(lockd, node, [spy], since, owner="TC-INV-01")
    answer = await lockd.call(wire.decide(lockd.txn(), "commit"), node=node)
    expect(answer, refused("tc_unavailable"), why=f"1 of 2 votes is no quorum; it led at term {leader.term} before")


def _share(calls: list[Call], lease: float, wanted: int, what: str) -> None:
    period = (calls[-1].at - calls[0].at) / (len(calls) - 1)
    expect(round(lease / period), wanted, why=what)


Registry = dict[str, wire.Backend]


def _everything(registry: Registry) -> dict[str, set[str]]:
    """Returns the backends of each endpoint."""
    ends = {end for entry in registry.values() for end in entry.endpoints}
    return {end: {backend for backend, entry in registry.items() if end in entry.endpoints} for end in ends}


def _newest(registry: Registry) -> dict[str, set[str]]:
    """Returns the newest backend of each endpoint; a restart with a memory store leaves the old hash at the peers."""
    return {
        end: {max(backends, key=lambda backend: registry[backend].updated_at)}
        for end, backends in _everything(registry).items()
    }


async def _equal_views(
    lockd: Lockd, nodes: list[str], since: Moment, shown: Callable[[Registry], dict[str, set[str]]]
) -> None:
    wanted = sorted(lockd.endpoint(node) for node in nodes)

    async def agreed() -> bool:
        lists = [await lockd.members(node) for node in nodes]
        return all(sorted(each) == wanted for each in lists) and await lockd.one_leader(*nodes) is not None

    await lockd.comes(agreed, "rejoin_max", since=since, what="equal lists and one leader")

    async def same_registry() -> bool:
        seen = [shown(await lockd.registered(node)) for node in nodes]
        return set(wanted) <= seen[0].keys() and all(each == seen[0] for each in seen)

    await lockd.comes(same_registry, "registry_equal_max", since=since, what="equal registries")


async def _leave_and_come_back(lockd: Lockd, nodes: list[str]) -> None:
    for node in nodes:
        await lockd.goes(node)
        await lockd.returns(node)
        await _listed(lockd, node, nodes)


async def _listed(lockd: Lockd, node: str, nodes: list[str]) -> None:
    async def everywhere() -> bool:
        return all([lockd.endpoint(node) in await lockd.members(place) for place in nodes])

    await lockd.comes(everywhere, "rejoin_max", what=f"{node} in every list again")


@verifies(
    "TC-INV-02", isolation="quiet", waits="cluster_leader_max + 4*rejoin_max + registry_equal_max + leave_reject_max"
)
async def test_leaves_and_returns_end_in_equal_views(lockd: Lockd, T: SpecTime) -> None:
    nodes, _ = await lockd.cluster("TC-INV-02")
    await _leave_and_come_back(lockd, nodes)
    await _equal_views(lockd, nodes, T.now(), _everything)


@verifies(
    "TC-INV-02",
    part=2,
    isolation="disruptive",
    waits="cluster_leader_max + 8*rejoin_max + registry_equal_max + exit_max",
)
async def test_stops_crashes_and_restarts_end_in_equal_views(lockd: Lockd, T: SpecTime) -> None:
    nodes, _ = await lockd.cluster("TC-INV-02")
    for node in nodes:
        await lockd.term(node, T.exit_max)
        await lockd.restart(node)
        await _listed(lockd, node, nodes)
    await _leave_and_come_back(lockd, nodes[:1])
    await lockd.kill(nodes[-1])
    await lockd.restart(nodes[-1])
    await _listed(lockd, nodes[-1], nodes)
    await _equal_views(lockd, nodes, T.now(), _newest)
