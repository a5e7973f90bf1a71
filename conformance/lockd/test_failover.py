"""Crash recovery over many independent kills (the one percentile of the catalogue, and it is ours)."""

import math
from dataclasses import dataclass
from functools import partial

from holdfast.check import verifies
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.client import Lockd
from holdfast.spectime import SpecTime
from holdfast.timeline import Moment

# Clusters that are killed beside each other, where we may have more than one.
CLUSTERS = 4


@dataclass(frozen=True)
class Recovery:
    """One kill: how long nobody decided, and from when to when that was."""

    seconds: float
    span: Moment


@verifies(
    "TC-ELECT-10",
    isolation="disruptive",
    nodes=3,
    heavy=True,
    waits="cluster_leader_max + 15*(failover_p95_max + rejoin_max)",
)
async def test_crash_recovery_keeps_its_percentile(lockd: Lockd, T: SpecTime) -> None:
    """Kills in several clusters at once, judged together; one that surely misses the bound is judged at once."""
    wanted = lockd.context.catalogue.requirements["TC-ELECT-10"].samples or 0
    further = CLUSTERS - 1 if lockd.context.target.startable else 0
    clusters = [lockd, *[await lockd.another() for _ in range(further)]]
    began, kills = T.now(), math.ceil(wanted / len(clusters))
    parts = await lockd.parallel([partial(_kill_leaders, cluster, kills) for cluster in clusters])
    recoveries = [recovery for part in parts for recovery in part]
    for quantile in (0.5, T.count("failover_percentile") / 100):
        T.percentile(
            "failover_p95_max",
            [recovery.seconds for recovery in recoveries],
            quantile,
            spans=[recovery.span for recovery in recoveries],
            since=began,
        )


async def _kill_leaders(lockd: Lockd, kills: int) -> list[Recovery]:
    """Before the next kill the last victim is back, all lists are equal and one leader is agreed on."""
    T, recoveries = lockd.T, list[Recovery]()
    nodes, leader = await lockd.cluster()
    for _ in range(kills):
        old = lockd.at(leader.endpoint)
        killed, survivors = await lockd.kill(old), lockd.others(old)
        seen = await _decides_again(lockd, survivors, killed)
        recoveries.append(Recovery(seen.hi - killed.lo, Moment(killed.lo, seen.hi)))
        if seen.lo - killed.hi > T.failover_p95_max:
            T.at_most("failover_p95_max", since=killed, seen=seen, what="the first decision after the kill")
        await lockd.restart(old)
        await lockd.introduce(*nodes)
        leader, _ = await lockd.agreed(*nodes)
    return recoveries


async def _decides_again(lockd: Lockd, survivors: list[str], killed: Moment) -> Moment:
    async def decides() -> bool:
        answers = [await lockd.call(wire.decide(lockd.txn(), "commit"), node=node) for node in survivors]
        return any(answer.ok for answer in answers)

    limit = 4 * lockd.T.failover_p95_max
    _, seen = await lockd.T.until(decides, give_up=limit, since=killed, what="a decision on a survivor")
    return seen
