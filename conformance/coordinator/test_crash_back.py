"""A node that was frozen until others had its jobs, and comes back (seed 3, Benefits; 4, Scenario B, step 2)."""

from dataclasses import dataclass

from holdfast.check.finding import demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.coordinator.client import Cluster
from holdfast.conformance.coordinator.crashes import heard, kill
from holdfast.conformance.coordinator.deeds import Deeds
from holdfast.conformance.coordinator.messages import Job
from holdfast.conformance.coordinator.worker import numbers

# Logs that are published once the node is back, and new jobs that are offered then.
_LOGS, _OFFERS, _JOBS = 20, 60, 2
_BACK = "first_leader + load_shown + heartbeat_interval + claim_latency + orphans_owned + tolerance + 20*quick_gap"


@dataclass(frozen=True)
class Back:
    """A node that is back from the dead: its former jobs, the id that reads the first of them now, and since when."""

    node: str
    id: str
    jobs: list[Job]
    reader: str
    woken: Moment

    @property
    def job(self) -> Job:
        return self.jobs[0]


async def _back(cluster: Cluster) -> Back:
    """Freezes a node that owns jobs until all of them have other readers, and lets it go on; returns once it has."""
    T = cluster.T
    (node, *_) = await cluster.followers()
    crowd = await cluster.jobs.at_least(node, _JOBS)
    id_ = await cluster.id_of(node)
    jobs = await cluster.jobs.of_node(id_, crowd.jobs)
    others = [await cluster.id_of(other) for other in cluster.others(node)]
    frozen = T.now()
    await cluster.pause(node)
    readers = await cluster.jobs.have_reader(jobs, "orphans_owned", since=frozen, among=others)
    woken = T.now()
    await cluster.resume(node)
    await T.sleep_until(woken, T.tolerance, f"{node} to find out that it has lost its jobs")
    return Back(node, id_, jobs, readers[jobs[0].id], woken)


async def _logged(cluster: Cluster, back: Back) -> tuple[Moment, Moment]:
    """Publishes logs for the node's former job, one by one; returns when the first and the last one were."""
    began = cluster.T.now()
    last = await cluster.worker.spread(back.job, _LOGS, cluster.T.quick_gap)
    await heard(cluster, cluster.others(back.node), since=back.woken)
    return began, last


async def _joins_in(cluster: Cluster, back: Back) -> None:
    """Offers new jobs until the node reads some of them; judges the time."""
    jobs = await cluster.jobs.inject(_OFFERS)
    offered = await cluster.worker.runs(*jobs)

    async def reads() -> bool:
        return back.id in (await cluster.groups.readers(jobs)).values()

    what = f"{back.node}, which is back, to read some of {_OFFERS} new jobs"
    await cluster.comes(reads, "ownership_latency", since=offered, what=what)


@verifies("CO-CRASH-10", isolation="disruptive", nodes=3, waits=f"{_BACK} + event_latency + ownership_latency")
async def test_a_node_back_from_the_dead_leaves_its_former_jobs_alone(cluster: Cluster) -> None:
    back = await _back(cluster)
    began, last = await _logged(cluster, back)
    await cluster.groups.done([back.job], "event_latency", since=last)
    await _not_given(cluster, back, began)
    beat = await cluster.beats.next(back.node, since=last)
    expect(beat.job_count or 0, 0, why=f"jobCount of {back.node}, whose jobs others have")
    await _joins_in(cluster, back)
    await _not_given(cluster, back, began)
    now = await cluster.groups.readers(back.jobs)
    wrong = [job_id for job_id, reader in now.items() if reader == back.id]
    demand(not wrong, f"{back.node} to read none of its former jobs", ", ".join(wrong[:5]), "others have them")


async def _not_given(cluster: Cluster, back: Back, began: Moment) -> None:
    """Judges that no entry of the former job was given to the node since then, and that the new reader had them."""
    for group in await cluster.groups.of_job(back.job):
        for consumer in await cluster.groups.consumers(group):
            if await cluster.groups.id_of(consumer) == back.id:
                given = cluster.T.now().hi - consumer.quiet_for
                seen = f"{back.node} was given some {given - began.hi:.2f} s after they began"
                demand(
                    given < began.lo, f"new entries of {group.queue} for {back.reader} only", seen, "it owns the job"
                )
    expect(await cluster.groups.reader(back.job), back.reader, why=f"who reads {back.job.id}")


@verifies("CO-CRASH-10", part=2, isolation="disruptive", nodes=3, waits=f"{_BACK} + event_latency")
async def test_logs_of_a_job_that_moved_are_stored_once(cluster: Cluster) -> None:
    back = await _back(cluster)
    _, last = await _logged(cluster, back)
    with cluster.context.arranging("CO-FAIL-03"):
        await cluster.groups.done([back.job], "event_latency", since=last)
    stored = sorted(numbers(await cluster.store.logs(back.job)))
    legal = cluster.worker.of(back.job).numbers
    if cluster.dialect.get("at_least_once") and stored != legal:
        cluster.context.warn(f"of {len(legal)} logs {len(stored)} are stored")
        stored = sorted(set(stored))
    expect(stored, legal, why=f"numbers of the logs of {back.job.id} that are stored")
    expect((await cluster.store.job(back.job)).owner, back.reader, why=f"the owner of {back.job.id}")


@verifies("CO-CRASH-10", part=3, isolation="disruptive", nodes=3, waits=f"{_BACK} + event_latency")
async def test_a_node_back_from_the_dead_reads_none_of_its_former_queues(
    cluster: Cluster, deeds: Deeds, T: SpecTime
) -> None:
    back = await _back(cluster)
    since = T.now()
    _, last = await _logged(cluster, back)
    with cluster.context.arranging("CO-FAIL-03"):
        await cluster.groups.done([back.job], "event_latency", since=last)
    commands = deeds.touches(back.job, since=since)
    demand(commands, f"reads of {back.job.id}", "none at the tap", f"{back.reader} owns it")
    living = [node for node in cluster.nodes if node != back.node]
    why = f"{back.node} has lost {back.job.id}, and goes on since {T.tolerance:.2f} s before"
    await deeds.of_nobody_else(commands, living, f"reads and acknowledgements of {back.job.id}", why)


@verifies(
    "CO-CRASH-10",
    part=4,
    isolation="disruptive",
    nodes=3,
    waits=f"{_BACK} + ownership_latency + load_shown + crash_handoff",
)
async def test_a_second_death_is_recovered_like_the_first(cluster: Cluster) -> None:
    back = await _back(cluster)
    await _joins_in(cluster, back)
    await cluster.beats.next(back.node, since=cluster.T.now(), fits=lambda beat: bool(beat.job_count))
    crash = await kill(cluster, back.node)
    found = await crash.offers()
    for each in found.values():
        what = f"the NodeCrash entry of {each.message.job_id}"
        cluster.T.at_most("crash_handoff", since=crash.last.at, seen=each.at, tolerance="tolerance", what=what)
    await crash.counted(found)
