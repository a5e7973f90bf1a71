"""Crash recovery over many independent kills (the only percentile of the catalogue; its bound is the suite's)."""

import math
from functools import partial

from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.client import Lockd
from holdfast.conformance.shared.recoveries import Kills, Recovery

# Clusters in which nodes are killed at the same time, where Holdfast can start several.
CLUSTERS = 4


@verifies(
    "TC-ELECT-10",
    isolation="disruptive",
    nodes=3,
    weight=2,
    waits="cluster_leader_max + 15*(failover_p95_max + rejoin_max)",
)
async def test_crash_recovery_keeps_its_percentile(lockd: Lockd, T: SpecTime) -> None:
    """Kills in several clusters at once and judges all together; stops once the percentile is surely missed."""
    wanted = lockd.context.catalogue.requirements["TC-ELECT-10"].samples or 0
    further = CLUSTERS - 1 if lockd.context.target.startable else 0
    clusters = [lockd, *[await lockd.another() for _ in range(further)]]
    each = math.ceil(wanted / len(clusters))
    kills = Kills(each * len(clusters))
    await lockd.parallel([partial(_kill_leaders, cluster, each, kills) for cluster in clusters])
    kills.judge(T, "failover_p95_max", 0.5, T.count("failover_percentile") / 100)


async def _kill_leaders(lockd: Lockd, times: int, kills: Kills) -> None:
    """Kills the leader `times` times. Before the next kill the node is back and all nodes agree on lists and leader."""
    nodes, leader = await lockd.cluster()
    while times and not kills.late:
        old = lockd.at(leader.endpoint)
        killed, survivors = await lockd.kill(old), lockd.others(old)
        queued = lockd.deployment.run_queue_wait()
        seen = await _decides_again(lockd, survivors, killed)
        queued = lockd.deployment.run_queue_wait() - queued
        times -= kills.take(lockd.context, Recovery.of(killed, seen, queued), lockd.T.failover_p95_max)
        await lockd.restart(old)
        await lockd.introduce(*nodes)
        leader, _ = await lockd.agreed(*nodes)


async def _decides_again(lockd: Lockd, survivors: list[str], killed: Moment) -> Moment:
    async def decides() -> bool:
        answers = [await lockd.call(wire.decide(lockd.txn(), "commit"), node=node) for node in survivors]
        return any(answer.ok for answer in answers)

    limit = 4 * lockd.T.failover_p95_max
    _, seen = await lockd.T.until(decides, give_up=limit, since=killed, what="a decision on a survivor")
    return seen
