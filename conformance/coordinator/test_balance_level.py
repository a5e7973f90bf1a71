"""How many jobs rebalancing moves, and who has them meanwhile (seed 3, L3; 4, Hybrid ACK)."""

from holdfast.check.finding import demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.coordinator.balancing import hands_off, peers, started
from holdfast.conformance.coordinator.bus import Entry
from holdfast.conformance.coordinator.client import Cluster
from holdfast.conformance.coordinator.messages import Job
from holdfast.conformance.coordinator.wire import ACK, HANDOFF

_LOW, _GIVEN = 20, 60
_ALONE = "start_up + first_leader + load_shown + rebalance_trigger"
_PAIR = "2*start_up + first_leader + load_shown + levelled"


async def _offered(cluster: Cluster, since: Moment) -> set[str]:
    return {entry.message.job_id for entry in await cluster.found(HANDOFF, since=since)}


@verifies("CO-BALANCE-02", isolation="quiet", nodes=1, start="by hand", waits=f"{_ALONE} + load_shown + balance_watch")
async def test_what_is_over_the_mean_is_moved_and_then_no_more(cluster: Cluster, T: SpecTime) -> None:
    await started(cluster)
    high, low, moved = (T.count(f"rebalance_{name}") for name in ("high", "low", "moved"))
    await cluster.jobs.owned(high)
    async with peers(cluster, low) as (ghost,):

        def takes(_handoff: Entry) -> bool:
            ghost.job_count = low + moved
            return True

        ghost.acks(takes)
        shown = ghost.beaten[0]
        what = f"handoff {moved} of a node with {high} jobs beside one with {low}"
        entry = await cluster.entry_in_time(HANDOFF, bound="rebalance_trigger", since=shown, count=moved, what=what)
        what = f"a heartbeat with jobCount {high - moved}"
        await cluster.beats.shows(
            cluster.alone, lambda beat: beat.job_count == high - moved, "load_shown", since=entry.at, what=what
        )
        await T.sleep_until(entry.at, T.balance_watch, "a second handoff")
        expect(len(await _offered(cluster, shown)), moved, why=f"jobs handed off, of {high} and {low}")


async def _nobody_answers(cluster: Cluster, jobs: list[Job]) -> tuple[Moment, set[str]]:
    """Waits until kept_look after the first handoff to a peer that never ACKs; returns when that was, and of what."""
    async with peers(cluster, _LOW) as (ghost,):
        first = await hands_off(cluster, ghost.beaten[0], f"a handoff of a node with {len(jobs)} jobs")
        await cluster.T.sleep_until(first, cluster.T.kept_look, "jobs that leave without an ACK")
        return first, await _offered(cluster, first)


@verifies("CO-BALANCE-03", isolation="quiet", nodes=1, start="by hand", waits=f"{_ALONE} + kept_look")
async def test_a_node_counts_its_jobs_until_another_acknowledges_them(cluster: Cluster, T: SpecTime) -> None:
    await started(cluster)
    jobs = await cluster.jobs.owned(round(T.share("just_above_ratio") * _LOW))
    first, _ = await _nobody_answers(cluster, jobs)
    beats = await cluster.beats.of(cluster.alone, since=first)
    demand(beats, "heartbeats", "none", "since the first handoff")
    for beat in beats:
        expect(beat.job_count, len(jobs), why=f"nobody has acknowledged a job: {beat.entry.describe()}")


@verifies("CO-BALANCE-03", part=2, isolation="quiet", nodes=1, start="by hand", waits=f"{_ALONE} + kept_look")
async def test_a_node_reads_its_jobs_until_another_acknowledges_them(cluster: Cluster, T: SpecTime) -> None:
    await started(cluster)
    jobs = await cluster.jobs.owned(round(T.share("just_above_ratio") * _LOW))
    _, ids = await _nobody_answers(cluster, jobs)
    offered, own = [job for job in jobs if job.id in ids], await cluster.id_of(cluster.alone)
    demand(offered, "jobs that were handed off", "none", "the node has twice the jobs of its peer")
    for job in offered:
        expect(await cluster.groups.reader(job), own, why=f"who reads {job.id}, which nobody has acknowledged")
    published = await cluster.worker.runs(offered[0])
    await cluster.groups.done(offered[:1], "event_latency", since=published)


async def _levelled(cluster: Cluster) -> dict[str, int]:
    """Gives one node jobs, starts another, and judges that they become level; returns their jobCounts."""
    one, other = cluster.nodes
    await started(cluster, one)
    await cluster.jobs.owned(_GIVEN)
    await cluster.start(other)
    first, slack = (await cluster.beats.first_of_all([other]))[other], cluster.T.count("level_slack")

    async def level() -> dict[str, int] | None:
        counts = await cluster.beats.counts([one, other])
        near = abs(counts[one] - counts[other]) <= 2 * slack
        return counts if near and sum(counts.values()) == _GIVEN else None

    what = f"jobCounts of {one} and {other} that differ by at most {2 * slack}"
    counts, _ = await cluster.comes(level, "levelled", since=first.at, what=what)
    if abs(counts[one] - counts[other]) > slack:
        cluster.context.warn(f"level_slack: the jobCounts are {counts[one]} and {counts[other]}")
    return counts


@verifies("CO-BALANCE-03", part=3, isolation="disruptive", nodes=2, start="by hand", waits=_PAIR)
async def test_two_nodes_become_level_by_acks_of_the_other(cluster: Cluster) -> None:
    with cluster.context.collect():
        await _levelled(cluster)
    one, other = [await cluster.id_of(node) for node in cluster.nodes]
    acks = await cluster.bus.entries(ACK, nodeId=one)
    demand(acks, f"ACKs of {other} for {one}", "none", "they have become level")
    own = [entry.describe() for entry in acks if entry.message.new_owner == one]
    demand(not own, f"no ACK that names {one} itself", "; ".join(own[:3]), f"{one} handed these jobs off")


@verifies("CO-BALANCE-03", part=4, isolation="disruptive", nodes=2, start="by hand", waits=_PAIR)
async def test_two_nodes_that_are_level_share_no_job(cluster: Cluster) -> None:
    counts = await _levelled(cluster)
    stored = {node: await cluster.store.jobs_of(await cluster.id_of(node)) for node in cluster.nodes}
    for node, owned in stored.items():
        expect(len(owned), counts[node], why=f"jobs of {node} in the store, and its jobCount")
    both = sorted(set.intersection(*stored.values()))
    demand(not both, "no job of both nodes", ", ".join(both[:3]), "each job has one owner")
