"""Crash recovery over many independent kills (the one percentile of the catalogue, and it is ours)."""

import math
from dataclasses import dataclass, field
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
    """One kill: how long nobody decided, from when to when that was, and what the survivors waited for a processor."""

    seconds: float
    span: Moment
    queued: float


# Of a kill that is not worth while any more we take the best that could have been.
AT_ONCE = Recovery(0.0, Moment(0.0, 0.0), 0.0)


@dataclass
class Kills:
    """All kills of all clusters. So few of them say something of a P95 only if none is late."""

    wanted: int
    recoveries: list[Recovery] = field(default_factory=list)
    late: bool = False

    def all(self) -> list[Recovery]:
        return self.recoveries + [AT_ONCE] * (self.wanted - len(self.recoveries))


@verifies(
    "TC-ELECT-10",
    isolation="disruptive",
    nodes=3,
    heavy=True,
    waits="cluster_leader_max + 15*(failover_p95_max + rejoin_max)",
)
async def test_crash_recovery_keeps_its_percentile(lockd: Lockd, T: SpecTime) -> None:
    """Kills in several clusters at once, judged together; none follow once the percentile is surely missed."""
    wanted = lockd.context.catalogue.requirements["TC-ELECT-10"].samples or 0
    further = CLUSTERS - 1 if lockd.context.target.startable else 0
    clusters = [lockd, *[await lockd.another() for _ in range(further)]]
    each = math.ceil(wanted / len(clusters))
    kills = Kills(each * len(clusters))
    await lockd.parallel([partial(_kill_leaders, cluster, each, kills) for cluster in clusters])
    for quantile in (0.5, T.count("failover_percentile") / 100):
        T.percentile(
            "failover_p95_max",
            [recovery.seconds for recovery in kills.all()],
            quantile,
            spans=[recovery.span for recovery in kills.all()],
            queued=[recovery.queued for recovery in kills.all()],
        )


async def _kill_leaders(lockd: Lockd, times: int, kills: Kills) -> None:
    """Before the next kill the last victim is back, all lists are equal and one leader is agreed on."""
    nodes, leader = await lockd.cluster()
    for _ in range(times):
        if kills.late:
            return
        old = lockd.at(leader.endpoint)
        killed, survivors = await lockd.kill(old), lockd.others(old)
        queued = lockd.deployment.run_queue_wait()
        seen = await _decides_again(lockd, survivors, killed)
        queued = lockd.deployment.run_queue_wait() - queued
        kills.recoveries.append(Recovery(seen.hi - killed.lo, Moment(killed.lo, seen.hi), queued))
        kills.late |= seen.lo - killed.hi > lockd.T.failover_p95_max
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
