"""Coordinators that are silent for a while and come back: frozen, or cut off from Redis (C4 … C6)."""

from holdfast.check.faults import Faults
from holdfast.check.finding import demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.coordinator.client import Cluster
from holdfast.conformance.coordinator.crashes import no_crash_handoff
from holdfast.conformance.coordinator.deeds import Deeds
from holdfast.conformance.coordinator.lock import Sample
from holdfast.conformance.coordinator.logged import all_logged
from holdfast.conformance.coordinator.messages import Job
from holdfast.conformance.coordinator.scenarios.steps import in_force, not_early, read_by, struck
from holdfast.conformance.coordinator.scenarios.watch import watching
from holdfast.conformance.coordinator.store import ENQUEUE, QUERY_LOGS
from holdfast.conformance.coordinator.wire import LEADER

# In the spec's seconds. A lease and a silence are over after LONG, neither of them after SHORT.
FROZEN_LEADER, FROZEN_OWNER = 40, 75
LONG, SHORT, FOLLOWER = 45, 15, 75
_JOBS, _LOGS = 3, 20


async def _keeps(cluster: Cluster, value: str, seconds: float, why: str) -> None:
    """Judges that L keeps this value for so long."""

    def same(seen: Sample) -> None:
        expect(seen.value, value, why=why)

    await cluster.lock.watch(seconds, why, same)


async def _deposed(cluster: Cluster, faults: Faults, kind: str, leader: str, subject: str, seconds: float) -> None:
    """Silences a leader until another one leads, for so long at least; then it comes back as a plain member."""
    T = cluster.T
    old = await cluster.lock.sample()
    async with faults.during(kind, subject) as window:
        since = in_force(window)
        _, taken = await cluster.lock.taken("leader_takeover", since=since, other_than=old.value, owner="CO-LOCK-03")
        not_early(T, old, taken)
        await T.sleep_until(since, seconds, f"{leader} to be silent for longer than its lease")
    new = (await cluster.lock.sample()).value
    await _keeps(cluster, new, T.renew_interval + T.tolerance, f"{leader} is back, and another one leads")
    beat = await cluster.beats.next(leader, since=T.now())
    demand(beat.role != LEADER, "the role of a follower", beat.describe(), f"{leader} is back, and another one leads")


async def _lost_owner(cluster: Cluster, faults: Faults, kind: str, of: str, seconds: float) -> None:
    """Silences a follower that owns jobs until others have them, for so long at least; then it leaves them alone."""
    T = cluster.T
    (owner, *_) = await cluster.followers()
    crowd = await cluster.jobs.at_least(owner, _JOBS)
    jobs = await cluster.jobs.of_node(await cluster.id_of(owner), crowd.jobs)
    others = cluster.others(owner)
    async with struck(cluster, faults, kind, owner, f"{owner}{of}") as crash:
        crash.in_time((await crash.offers()).values())
        among = [await cluster.id_of(node) for node in others]
        await cluster.jobs.have_reader(jobs, "orphans_owned", since=crash.killed, among=among)
        await T.sleep_until(crash.killed, seconds, f"{owner} to be silent for long")
    await T.sleep(T.tolerance, f"{owner} to find out that it has lost its jobs")
    since = T.now()
    await _logged(cluster, jobs)
    beat = await cluster.beats.next(owner, since=since)
    expect(beat.job_count or 0, 0, why=f"jobCount of {owner}, whose jobs others have")
    await read_by(cluster, jobs, others, f"{owner} is back from the dead")


async def _logged(cluster: Cluster, jobs: list[Job]) -> None:
    """Publishes logs for these jobs; judges that all of theirs, and of before, are processed, each once."""
    T = cluster.T
    last = T.now()
    for job in jobs:
        last = await cluster.worker.spread(job, _LOGS, T.quick_gap / len(jobs))
    await cluster.groups.done(jobs, "batch_latency", since=last)
    if await cluster.store.has(QUERY_LOGS):
        await all_logged(cluster, jobs, "batch_latency", since=last)


@verifies(
    "CO-LOCK-06",
    part=2,
    isolation="disruptive",
    nodes=3,
    needs_hooks=[ENQUEUE],
    waits="first_leader + leader_takeover + renew_interval + 5*load_shown + crash_handoff + orphans_owned",
)
@verifies("CO-CRASH-10")
async def test_c04_owner_and_leader_frozen(cluster: Cluster, faults: Faults, deeds: Deeds, T: SpecTime) -> None:
    """Neither does anything stale once it goes on: others own and lead by then, and nothing is processed twice."""
    async with watching(cluster, deeds):
        with cluster.context.about("CO-CRASH-10"):
            await _lost_owner(cluster, faults, "stop", "", T.scaled(FROZEN_OWNER))
        async with cluster.jobs.steadily(T.quick_gap):  # so that there is something to do at the moment of waking
            leader = await cluster.leader()
            with cluster.context.about("CO-LOCK-06"):
                await _deposed(cluster, faults, "stop", leader, leader, T.scaled(FROZEN_LEADER))


@verifies(
    "CO-LOCK-06",
    part=4,
    isolation="disruptive",
    nodes=3,
    needs_hooks=[ENQUEUE],
    waits="first_leader + 2*leader_takeover + 3*renew_interval + 2*load_shown + dead_node_timeout",
)
async def test_c05_leader_cut_off_from_redis(cluster: Cluster, faults: Faults, deeds: Deeds, T: SpecTime) -> None:
    """For half a lease nothing changes; for longer than a lease another one leads, and the old one steps down."""
    async with watching(cluster, deeds), cluster.jobs.steadily(T.steady_gap):
        leader = await cluster.leader()
        before, since = (await cluster.lock.just_renewed()).value, T.now()
        async with faults.during("cut", f"{leader}-redis"):
            await _keeps(cluster, before, T.scaled(SHORT), f"{leader} was cut off for half a lease")
        await _keeps(cluster, before, T.renew_interval, f"{leader} is back in time")
        await _unhurt(cluster, since)
        await _deposed(cluster, faults, "cut", leader, f"{leader}-redis", T.scaled(LONG))


async def _unhurt(cluster: Cluster, since: Moment) -> None:
    why = "a leader was cut off for less than dead_node_timeout"
    await no_crash_handoff(cluster, since=since, why=why)


@verifies(
    "CO-CRASH-10",
    isolation="disruptive",
    nodes=3,
    needs=("chaos.partition",),
    waits="first_leader + 5*load_shown + crash_handoff + orphans_owned",
)
async def test_c06_follower_cut_off_from_redis(cluster: Cluster, faults: Faults, T: SpecTime) -> None:
    """It is taken for dead and its jobs move; once it is back it leaves them alone."""
    async with watching(cluster):
        await _lost_owner(cluster, faults, "cut", "-redis", T.scaled(FOLLOWER))
