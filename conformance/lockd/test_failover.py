"""Crash recovery over many independent kills (the one percentile of the catalogue, and it is ours)."""

import math
from collections import defaultdict
from dataclasses import dataclass

import pytest

from holdfast.check import verifies
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.client import Lockd
from holdfast.spectime import SpecTime
from holdfast.timeline import Moment

# Clusters that are killed beside each other; their trials add up to the samples of the row.
CLUSTERS = 4
KILLS = 15


@dataclass(frozen=True)
class Recovery:
    """One kill: how long nobody decided, and from when to when that was."""

    seconds: float
    span: Moment


# Of clusters that are done, until there are enough for the percentile; those of each mutant apart.
_gathered: defaultdict[str, list[Recovery]] = defaultdict(list)


@pytest.mark.parametrize("cluster", range(1, CLUSTERS + 1))
@verifies("TC-ELECT-10", isolation="disruptive", waits="cluster_leader_max + 15*(failover_p95_max + rejoin_max)")
async def test_crash_recovery_keeps_its_percentile(lockd: Lockd, T: SpecTime, cluster: int) -> None:
    """Every cluster adds its kills, and the last one judges them all; who surely misses the bound is judged at once."""
    wanted = lockd.context.catalogue.requirements["TC-ELECT-10"].samples or 0
    assert wanted <= CLUSTERS * KILLS, f"{math.ceil(wanted / CLUSTERS)} kills in each cluster are needed"
    nodes, leader = await lockd.cluster()
    began, own = T.now(), list[Recovery]()
    for _ in range(KILLS):
        old = lockd.at(leader.endpoint)
        killed, survivors = await lockd.kill(old), lockd.others(old)
        seen = await _decides_again(lockd, survivors, killed)
        own.append(Recovery(seen.hi - killed.lo, Moment(killed.lo, seen.hi)))
        if seen.lo - killed.hi > T.failover_p95_max:
            T.at_most("failover_p95_max", since=killed, seen=seen, what="the first decision after the kill")
        await lockd.restart(old)
        await lockd.introduce(*nodes)
        leader, _ = await lockd.agreed(*nodes)
    all_ = _gathered[lockd.deployment.wanted.variant]
    all_ += own
    lockd.context.transcript.note(f"cluster {cluster}: {len(own)} kills, {len(all_)} in all so far")
    if len(all_) >= wanted:
        enough = all_.copy()
        all_.clear()
        for quantile in (0.5, T.count("failover_percentile") / 100):
            T.percentile(
                "failover_p95_max",
                [recovery.seconds for recovery in enough],
                quantile,
                spans=[recovery.span for recovery in enough],
                since=began,
            )


async def _decides_again(lockd: Lockd, survivors: list[str], killed: Moment) -> Moment:
    async def decides() -> bool:
        answers = [await lockd.call(wire.decide(lockd.txn(), "commit"), node=node) for node in survivors]
        return any(answer.ok for answer in answers)

    limit = 4 * lockd.T.failover_p95_max
    _, seen = await lockd.T.until(decides, give_up=limit, since=killed, what="a decision on a survivor")
    return seen
