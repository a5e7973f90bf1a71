"""Crash recovery over many independent kills (the only percentile of the catalogue; its bound is the suite's)."""

import math
from dataclasses import dataclass, field
from functools import partial

from holdfast.check.finding import Inconclusive
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.client import Lockd

# Clusters in which nodes are killed at the same time, where Holdfast can start several.
CLUSTERS = 4


@dataclass(frozen=True)
class Recovery:
    """One kill: how long nobody decided, from when to when, and how long the survivors waited in run queues."""

    seconds: float
    span: Moment
    queued: float


# Share of the wanted kills that may be left out because the machine was too slow. Only late ones are, so a target that
# is often late must not pass because of them: this is as many as may be late at this percentile.
MOST_LEFT_OUT = 0.05
# Used for a kill that is left out because it can no longer change the verdict: the best possible result.
AT_ONCE = Recovery(0.0, Moment(0.0, 0.0), 0.0)


@dataclass
class Kills:
    """The kills of all clusters together. With this few samples the P95 holds only if none is late.

    A kill after which the machine itself took the time that is over the budget tells nothing about the target, so it is
    not counted and another one takes its place. Too many of those, and nothing can be concluded on this machine.
    """

    wanted: int
    recoveries: list[Recovery] = field(default_factory=list)
    void: int = 0
    late: bool = False

    def left_out(self, recovery: Recovery, lag: float, budget: float) -> bool:
        """Whether the kill does not count; raises Inconclusive once more are left out than may be."""
        if not 0 < recovery.seconds - budget <= recovery.queued + lag:
            return False
        self.void += 1
        if self.void > self.wanted * MOST_LEFT_OUT:
            raise Inconclusive(f"in {self.void} of {self.void + len(self.recoveries)} kills the machine was too slow")
        return True

    def all(self) -> list[Recovery]:
        return self.recoveries + [AT_ONCE] * (self.wanted - len(self.recoveries))


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
    for quantile in (0.5, T.count("failover_percentile") / 100):
        T.percentile(
            "failover_p95_max",
            [recovery.seconds for recovery in kills.all()],
            quantile,
            spans=[recovery.span for recovery in kills.all()],
            queued=[recovery.queued for recovery in kills.all()],
        )


async def _kill_leaders(lockd: Lockd, times: int, kills: Kills) -> None:
    """Kills the leader `times` times. Before the next kill the node is back and all nodes agree on lists and leader."""
    nodes, leader = await lockd.cluster()
    while times and not kills.late:
        old = lockd.at(leader.endpoint)
        killed, survivors = await lockd.kill(old), lockd.others(old)
        queued = lockd.deployment.run_queue_wait()
        seen = await _decides_again(lockd, survivors, killed)
        queued = lockd.deployment.run_queue_wait() - queued
        recovery = Recovery(seen.hi - killed.lo, Moment(killed.lo, seen.hi), queued)
        lag = lockd.context.audit.lag_between(killed.lo, seen.hi)
        if kills.left_out(recovery, lag, lockd.T.failover_p95_max):
            lockd.context.transcript.note(
                f"not counted: {recovery.seconds:.2f} s, of which {queued + lag:.2f} s were the machine's"
            )
        else:
            times -= 1
            kills.recoveries.append(recovery)
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
