"""Rebalancing, which the document leaves open (seed 3, L3): what triggers it, and what does not."""

from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.coordinator.balancing import hands_off, peers, started
from holdfast.conformance.coordinator.client import Cluster
from holdfast.conformance.coordinator.ghost import playing
from holdfast.conformance.coordinator.wire import ACTIVE, DRAINING, HANDOFF

# Jobs of a peer, and jobs that one node has where three are level.
_LOW, _LEVEL, _OTHERS = 20, 52, (50, 48)
_ALONE = 50


async def _rests(cluster: Cluster, since: Moment, why: str) -> None:
    await cluster.T.sleep_until(since, cluster.T.balance_watch, "a handoff that nothing calls for")
    await cluster.no_entry(HANDOFF, since=since, why=why)


@verifies(
    "CO-BALANCE-01",
    isolation="quiet",
    nodes=1,
    start="by hand",
    waits="start_up + first_leader + load_shown + rebalance_trigger",
)
async def test_a_node_with_twice_the_jobs_of_another_hands_jobs_off(cluster: Cluster, T: SpecTime) -> None:
    await started(cluster)
    many = round(T.share("just_above_ratio") * _LOW)
    await cluster.jobs.owned(many)
    async with peers(cluster, _LOW) as (ghost,):
        await hands_off(cluster, ghost.beaten[0], f"a handoff of a node with {many} jobs beside one with {_LOW}")


@verifies(
    "CO-BALANCE-01",
    isolation="quiet",
    nodes=1,
    start="by hand",
    waits="start_up + first_leader + load_shown + balance_watch + rebalance_trigger",
)
async def test_a_node_with_less_than_twice_the_jobs_keeps_them(cluster: Cluster, T: SpecTime) -> None:
    await started(cluster)
    many = round(T.share("just_below_ratio") * _LOW)
    await cluster.jobs.owned(many)
    async with peers(cluster, _LOW, _LOW + many // 4) as (least, _):
        await _rests(cluster, least.beaten[0], f"the node has {many} jobs, and no peer fewer than {_LOW}")
        least.job_count = round(many / T.share("just_above_ratio"))
        shown = await least.beat()
        await hands_off(cluster, shown, f"control: a handoff beside a peer with {least.job_count} jobs")


@verifies(
    "CO-BALANCE-01",
    isolation="quiet",
    nodes=1,
    start="by hand",
    waits="start_up + first_leader + load_shown + balance_watch",
)
async def test_nodes_that_are_nearly_level_keep_their_jobs(cluster: Cluster) -> None:
    await started(cluster)
    await cluster.jobs.owned(_LEVEL)
    async with peers(cluster, *_OTHERS) as (ghost, _):
        await _rests(cluster, ghost.beaten[0], f"the nodes have {_LEVEL}, {_OTHERS[0]} and {_OTHERS[1]} jobs")


@verifies(
    "CO-BALANCE-01",
    isolation="quiet",
    nodes=1,
    start="by hand",
    waits="start_up + first_leader + surely_dead + 2*load_shown + balance_watch + rebalance_trigger",
)
async def test_dead_and_draining_peers_do_not_count(cluster: Cluster, T: SpecTime) -> None:
    await started(cluster)
    dead = cluster.ghost()
    dead.job_count = 0
    last = await dead.beat()
    await T.sleep_until(last, T.surely_dead, "a peer to be dead")
    draining = cluster.ghost()
    draining.job_count, draining.status = 0, DRAINING
    async with playing(draining):
        await cluster.jobs.owned(_ALONE)
        await _rests(cluster, T.now(), "the only peers with fewer jobs are dead and draining")
        draining.status = ACTIVE
        shown = await draining.beat()
        await hands_off(cluster, shown, "control: a handoff once the peer is active")
