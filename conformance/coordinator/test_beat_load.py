"""What heartbeats say of the node: how many jobs it owns (seed 3, L2), its role and its state (seed 1; 4)."""

from collections.abc import Callable

from holdfast.check.finding import expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.coordinator.beats import Beat
from holdfast.conformance.coordinator.client import Cluster
from holdfast.conformance.coordinator.ghost import playing
from holdfast.conformance.coordinator.wire import ACTIVE, DRAINING, LEADER

_JOBS, _HANDED_OVER = 7, 30

# --- CO-BEAT-03


@verifies("CO-BEAT-03", isolation="quiet", waits="first_leader + load_shown")
async def test_heartbeats_count_the_jobs_that_were_won(cluster: Cluster, T: SpecTime) -> None:
    await cluster.beats.first_of_all(cluster.nodes)
    before, since = sum((await cluster.beats.counts(cluster.nodes)).values()), T.now()
    await cluster.jobs.inject(_JOBS)
    await cluster.beats.add_up(cluster.nodes, before + _JOBS, "load_shown", since=since)


@verifies("CO-BEAT-03", part=2, isolation="disruptive", nodes=3, waits="first_leader + 3*load_shown + clean_drain")
async def test_heartbeats_count_the_jobs_that_were_taken_over(cluster: Cluster) -> None:
    await cluster.beats.first_of_all(cluster.nodes)
    await cluster.jobs.running(_HANDED_OVER)
    leaver = cluster.nodes[0]
    survivors = cluster.others(leaver)
    leaving = cluster.leave(leaver)
    exited = await leaving.ends()
    await cluster.beats.add_up(survivors, _HANDED_OVER, "load_shown", since=exited)


@verifies("CO-BEAT-03", part=3, isolation="quiet", waits="first_leader + load_shown")
async def test_heartbeats_count_the_jobs_that_the_store_says(cluster: Cluster, T: SpecTime) -> None:
    await cluster.beats.first_of_all(cluster.nodes)
    since = T.now()
    await cluster.jobs.inject(_JOBS)
    for node in cluster.nodes:
        id_ = await cluster.id_of(node)
        stored = dict[str, int]()

        async def agree(node: str = node, id_: str = id_, stored: dict[str, int] = stored) -> bool:
            stored[id_] = len(await cluster.store.jobs_of(id_))
            return (await cluster.beats.counts([node], since=since)).get(node) == stored[id_]

        what = f"a jobCount of {node} that is the number of its jobs in the store"
        await cluster.comes(agree, "load_shown", since=since, what=what)


# --- CO-BEAT-04


async def _says(cluster: Cluster, nodes: list[str], fits: Callable[[Beat], bool], since: Moment, what: str) -> Beat:
    """Judges that a heartbeat of one of these nodes, an interval after that moment at the latest, fits."""

    async def look() -> Beat | None:
        found = [each for node in nodes for each in await cluster.beats.of(node, since=since) if fits(each)]
        return min(found, key=lambda each: each.at.lo, default=None)

    give_up = 2 * (cluster.T.heartbeat_interval + cluster.T.tolerance)
    beat, _ = await cluster.T.until(look, give_up=give_up, since=since, what=what)
    cluster.T.at_most("heartbeat_interval", since=since, seen=beat.at, tolerance="tolerance", what=what)
    return beat


@verifies("CO-BEAT-04", isolation="quiet", nodes=1, waits="first_leader + 2*heartbeat_interval")
async def test_the_only_node_says_that_it_leads_and_is_active(cluster: Cluster) -> None:
    led = await cluster.lock.led()
    what = f"a heartbeat of {cluster.alone} with role Leader"
    beat = await _says(cluster, cluster.nodes, lambda each: each.role == LEADER, led.moment, what)
    expect(beat.status, ACTIVE, why=f"the status in {beat.entry.describe()}")


@verifies("CO-BEAT-04", part=2, isolation="quiet", nodes=3, waits="first_leader + beat_watch")
async def test_one_node_says_that_it_leads(cluster: Cluster, T: SpecTime) -> None:
    led = await cluster.lock.led()
    since = Moment(led.moment.hi + T.tolerance, led.moment.hi + T.tolerance)
    await T.sleep_until(since, T.beat_watch, "heartbeats of all nodes")
    leaders = await cluster.beats.leaders(since=since)
    expect(len(leaders), 1, why="ids that beat with role Leader")
    await cluster.beats.one_leads(cluster.nodes, since=since)
    if holder := await cluster.leader_by(led.value):
        expect(leaders, {await cluster.id_of(holder)}, why=f"who says Leader while {led.value} is in the lock")


@verifies("CO-BEAT-04", part=3, isolation="disruptive", nodes=3, waits="first_leader + leader_takeover + beat_watch")
async def test_the_next_leader_says_so(cluster: Cluster) -> None:
    leader = await cluster.leader()
    old = await cluster.lock.value()
    killed = await cluster.kill(leader)
    _, taken = await cluster.lock.taken("leader_takeover", since=killed, other_than=old, owner="CO-LOCK-03")
    what = "a heartbeat of a survivor with role Leader"
    await _says(cluster, cluster.others(leader), lambda each: each.role == LEADER, taken, what)


@verifies("CO-BEAT-04", part=4, isolation="disruptive", nodes=1, waits="first_leader + load_shown + beat_watch")
async def test_a_node_that_drains_says_so(cluster: Cluster) -> None:
    await cluster.leader()
    async with playing(cluster.ghost()):
        await cluster.jobs.owned()
        leaving = cluster.leave(cluster.alone)
        what = f"a heartbeat of {cluster.alone} with status Draining"
        await _says(cluster, cluster.nodes, lambda each: each.status == DRAINING, leaving.begun, what)
