"""How a dead node is noticed (seed 4, Scenario B, step 2): by its silence, and by nothing else."""

import pytest

from holdfast.check.finding import expect
from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.conformance.coordinator.base import of_job
from holdfast.conformance.coordinator.client import Cluster
from holdfast.conformance.coordinator.crashes import heard, kill, no_crash_handoff
from holdfast.conformance.coordinator.ghost import playing
from holdfast.conformance.coordinator.store import SEED_JOB
from holdfast.conformance.coordinator.wire import HANDOFF, NODE_CRASH

# Deaths of an owner, each at another phase of its heartbeat and of the leader's checks, and its jobs, at least.
_ROUNDS, _JOBS = 10, 3
_CROWD = "first_leader + load_shown + heartbeat_interval + claim_latency"


@pytest.mark.parametrize("number", range(_ROUNDS))
@verifies("CO-CRASH-01", isolation="disruptive", nodes=3, waits=f"{_CROWD} + orphan_check_interval + crash_handoff")
async def test_the_jobs_of_a_silent_node_are_published_in_time(cluster: Cluster, T: SpecTime, number: int) -> None:
    (node, *_) = await cluster.followers()
    crowd = await cluster.jobs.at_least(node, _JOBS)
    phase = T.orphan_check_interval * number / _ROUNDS
    await T.sleep_until(crowd.beat.at, phase, "a phase of the heartbeat, and of the leader's checks")
    crash = await kill(cluster, node)
    found = await crash.offers()
    crash.in_time(found.values())
    await crash.counted(found)


@verifies(
    "CO-CRASH-02",
    isolation="disruptive",
    nodes=3,
    waits=f"{_CROWD} + 2*short_freeze + 2*heartbeat_interval + crash_watch",
)
async def test_a_node_that_beats_again_in_time_keeps_its_jobs(cluster: Cluster, T: SpecTime) -> None:
    (node, *_) = await cluster.followers()
    crowd = await cluster.jobs.at_least(node, _JOBS)
    began = woken = T.now()
    for _ in range(2):
        await cluster.pause(node)
        await T.sleep(T.short_freeze, f"{node} to be silent, but not for long")
        woken = T.now()
        await cluster.resume(node)
        await cluster.beats.next(node, since=woken)
    await T.sleep_until(woken, T.crash_watch, "handoffs of a node that lives")
    await heard(cluster, cluster.nodes, since=began)
    await no_crash_handoff(cluster, since=began, why=f"{node} was never silent for dead_node_timeout")
    beat = await cluster.beats.last(node)
    expect(beat.job_count or 0, crowd.count, why=f"jobCount of {node} after its two pauses")


@verifies(
    "CO-CRASH-02",
    part=2,
    isolation="disruptive",
    nodes=1,
    waits="first_leader + crash_watch + crash_handoff",
    needs_hooks=[SEED_JOB],
)
async def test_timestamps_in_heartbeats_kill_nobody(cluster: Cluster, T: SpecTime) -> None:
    await cluster.leader()
    ghost = cluster.ghost()
    ghost.skew = -T.clock_skew
    async with playing(ghost):
        job = await cluster.store.seed(ghost.id)
        began = T.now()
        await T.sleep(T.crash_watch, "handoffs of a node whose clock is behind")
        await cluster.no_entry(HANDOFF, of_job(job.id), since=began, why=f"{ghost.id} beats all the time")
        await ghost.fall_silent()
    ghost.skew = T.clock_skew
    last = await ghost.beat()
    what = f"a NodeCrash entry of {job.id}"
    give_up = T.crash_handoff + 3 * T.tolerance
    entry = await cluster.entry(HANDOFF, of_job(job.id, NODE_CRASH), give_up=give_up, since=last, what=what)
    T.at_least("dead_node_timeout", since=last, seen=entry.at, tolerance="tolerance", what=what)
    T.at_most("crash_handoff", since=last, seen=entry.at, tolerance="tolerance", what=what)


# --- CO-CRASH-09


@verifies("CO-CRASH-09", isolation="disruptive", nodes=3, waits=f"{_CROWD} + new_leader_handoff + load_shown")
async def test_the_next_leader_recovers_the_jobs_of_the_last(cluster: Cluster) -> None:
    await _leader_dies(cluster, "orphan_check_interval", "tolerance")


@verifies(
    "CO-CRASH-09", part=2, isolation="disruptive", nodes=3, start="by hand", waits=f"{_CROWD} + new_leader_handoff"
)
async def test_the_next_leader_has_watched_heartbeats_all_the_time(cluster: Cluster, T: SpecTime) -> None:
    for node in cluster.nodes:
        await cluster.restart(node, orphan_check_interval=str(T.set_check))
    await _leader_dies(cluster, "set_check", "wide_tolerance")


async def _leader_dies(cluster: Cluster, interval: str, tolerance: str) -> None:
    """Kills the leader, which owns jobs, and judges when the next one publishes them; then they must be owned again.

    That is one interval after the new value in the lock, but not before the dead leader counts as dead.
    """
    T = cluster.T
    leader = await cluster.leader()
    crowd = await cluster.jobs.at_least(leader, _JOBS)
    old = await cluster.lock.value()
    crash = await kill(cluster, leader)
    _, taken = await cluster.lock.taken("leader_takeover", since=crash.killed, other_than=old, owner="CO-LOCK-03")
    later = max(taken, crash.dead_at, key=lambda each: each.hi)
    found = await crash.offers(latest=later.hi - crash.last.at.hi + getattr(T, interval))
    for each in found.values():
        what = f"the NodeCrash entry of {each.message.job_id}"
        T.at_most(interval, since=later, seen=each.at, tolerance=tolerance, what=what)
        T.at_most("new_leader_handoff", since=crash.killed, seen=each.at, what=what)
    await crash.counted(found)
    last = max((each.at for each in found.values()), key=lambda at: at.hi)
    await cluster.beats.add_up(cluster.others(leader), len(crowd.jobs), "load_shown", since=last)
