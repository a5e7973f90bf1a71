"""Heartbeats of the coordinators (seed 2, Heartbeats; 3, L2; 5, CoordinatorHeartbeatService)."""

import itertools

from holdfast.check.finding import Finding, demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.coordinator.base import any_entry
from holdfast.conformance.coordinator.bus import Entry
from holdfast.conformance.coordinator.client import Cluster
from holdfast.conformance.coordinator.ghost import playing
from holdfast.conformance.coordinator.leaving import Leaving
from holdfast.conformance.coordinator.wire import ACK, BEAT

# Nodes on one machine that choose their ids themselves.
_MACHINE = 3


async def _steady(cluster: Cluster, node: str, since: Moment) -> None:
    """Judges that the node has beaten at its interval from then until now, the edges of that time included."""
    T, until = cluster.T, cluster.T.now()
    beats = [each for each in await cluster.beats.of(node, since=since) if each.at.lo >= since.hi]
    marks = [since, *(beat.at for beat in beats), until]
    for number, (before, after) in enumerate(itertools.pairwise(marks)):
        what = f"silence of {node}, of which {len(beats)} heartbeats came in {until.hi - since.lo:.2f} s,"
        T.at_most("heartbeat_interval", since=before, seen=after, tolerance="tolerance", what=what)
        if 0 < number < len(beats):
            what = f"heartbeat {number + 1} of {node} after the one before"
            T.at_least("heartbeat_interval", since=before, seen=after, tolerance="tolerance", what=what)


async def _settled(cluster: Cluster) -> Moment:
    """Waits until the nodes have started, and one leads; returns when."""
    await cluster.leader()
    await cluster.beats.first_of_all(cluster.nodes)
    return cluster.T.now()


# --- CO-BEAT-01


@verifies("CO-BEAT-01", isolation="quiet", nodes=1, waits="first_leader + beat_watch")
async def test_a_node_beats_at_its_interval(cluster: Cluster, T: SpecTime) -> None:
    since = await _settled(cluster)
    await T.sleep_until(since, T.beat_watch, "heartbeats")
    await _steady(cluster, cluster.nodes[0], since)


@verifies("CO-BEAT-01", part=2, isolation="quiet", nodes=3, waits="first_leader + beat_watch")
async def test_leader_and_followers_beat_at_their_interval(cluster: Cluster, T: SpecTime) -> None:
    await cluster.leader()
    since = T.now()
    await T.sleep_until(since, T.beat_watch, "heartbeats of all nodes")
    beaten = {each.node_id for each in await cluster.beats.all(since=since)}
    expect(len(beaten), len(cluster.nodes), why="ids that beat while so many nodes run")
    for node in cluster.nodes:
        await _steady(cluster, node, since)


async def _leaves(cluster: Cluster) -> Leaving:
    """Ends the only node, which owns a job that nobody takes."""
    await cluster.leader()
    (job,) = await cluster.jobs.owned()
    leaving = cluster.leave(cluster.alone)
    await leaving.offer(job)
    return leaving


@verifies(
    "CO-BEAT-01",
    part=3,
    isolation="disruptive",
    nodes=1,
    waits="first_leader + load_shown + handoff_hard_timeout + exit_tolerance",
)
async def test_a_draining_node_beats_until_its_exit(cluster: Cluster, T: SpecTime) -> None:
    node = cluster.alone
    async with playing(cluster.ghost()):
        leaving = await _leaves(cluster)
        last = await cluster.beats.last(node, before=leaving.begun)
        exited = await leaving.ends()
    beats = [each.at for each in await cluster.beats.of(node, since=last.at) if each.at.lo > last.at.hi]
    marks = [last.at, *beats, exited]
    for before, after in itertools.pairwise(marks):
        what = f"silence of {node}, which drained for {exited.hi - leaving.begun.lo:.2f} s,"
        T.at_most("heartbeat_interval", since=before, seen=after, tolerance="tolerance", what=what)


# --- CO-BEAT-02


def _stamped(entry: Entry) -> float:
    """Judges the members of one heartbeat; returns its timestamp."""
    said, why = entry.message, entry.describe()
    demand(said.node_id, "a nodeId that is a text", f"{said.get('nodeId')}", why)
    demand((said.job_count if said.job_count is not None else -1) >= 0, "a jobCount from 0 on", "another", why)
    stamp = said.time("timestamp")
    if stamp is None:
        raise Finding(["a timestamp with offset, or since 1970"], f"{said.get('timestamp')}", why)
    return stamp


def _near(cluster: Cluster, entry: Entry, stamp: float) -> None:
    """Judges that a heartbeat was written about when its timestamp says."""
    sent = cluster.bus.clock.moment(1000 * stamp)
    first, second = (sent, entry.at) if sent.lo <= entry.at.lo else (entry.at, sent)
    off, why = second.lo - first.hi, entry.describe()
    demand(off <= cluster.never("timestamp_lag"), "the time of sending as timestamp", f"it is {off:.2f} s off", why)
    cluster.T.at_most("timestamp_lag", since=first, seen=second, what="the timestamp of a heartbeat")


@verifies("CO-BEAT-02", isolation="quiet", waits="first_leader + beat_watch")
async def test_a_heartbeat_says_who_how_many_and_when(cluster: Cluster, T: SpecTime) -> None:
    since = await _settled(cluster)
    await T.sleep_until(since, T.beat_watch, "heartbeats")
    last, entries = dict[str, float](), await cluster.found(BEAT, since=since)
    for entry in entries:
        stamp, id_ = _stamped(entry), entry.message.node_id
        told = f"{stamp - last.get(id_, 0):.3f} s later"
        demand(stamp > last.get(id_, 0), "a later timestamp than in the one before", told, entry.describe())
        last[id_] = stamp
    for entry in entries:
        _near(cluster, entry, entry.message.time("timestamp") or 0)
    expect(len(last), len(cluster.nodes), why="ids that beat while so many nodes run")


@verifies("CO-BEAT-02", part=2, isolation="quiet", nodes=1, waits="first_leader + claim_latency")
async def test_the_store_knows_an_owner_by_the_id_in_its_heartbeats(cluster: Cluster) -> None:
    await _settled(cluster)
    job, since = await cluster.jobs.inject_one(), cluster.T.now()
    ids = {each.node_id for each in await cluster.beats.all()}
    what = f"an owner of {job.id} that beats"
    await cluster.store.becomes(job, lambda seen: seen.owner in ids, "claim_latency", since=since, what=what)


@verifies("CO-BEAT-02", part=3, isolation="disruptive", nodes=2, waits="first_leader + 2*load_shown + clean_drain")
async def test_the_ack_topic_is_named_after_the_id_in_heartbeats(cluster: Cluster) -> None:
    await _settled(cluster)
    node = cluster.nodes[0]
    await cluster.jobs.at_least(node, 1)
    ids = {each.node_id for each in await cluster.beats.all()}
    leaving = cluster.leave(node)

    async def used() -> list[str] | None:
        channels = await cluster.bus.channels(ACK)
        found = [
            name for name, said in channels.items() if await cluster.found(ACK, any_entry, since=leaving.begun, **said)
        ]
        return found or None

    with cluster.context.arranging("CO-TAKE-04"):
        give_up = cluster.never("retry_taken")
        topics, _ = await cluster.T.until(used, give_up=give_up, what="an ACK of a handoff")
    own = cluster.names.channel(ACK, nodeId=await cluster.id_of(node))
    legal = {cluster.names.channel(ACK, nodeId=id_) for id_ in ids}
    expect(sorted({*topics} - legal), [], why="ACK topics that end in no id of a heartbeat")
    expect(own in topics, True, why=f"whether {own} was used")


@verifies("CO-BEAT-02", part=4, isolation="disruptive", nodes=_MACHINE, start="by hand", waits="start_up + beat_watch")
async def test_nodes_of_one_machine_choose_different_ids(cluster: Cluster, T: SpecTime) -> None:
    if "node_id" in cluster.context.target.settings:
        for node in cluster.deployment.nodes.values():
            node.configure(unset=["node_id"])
    since = await cluster.start()
    await T.sleep_until(since, T.beat_watch, "heartbeats of nodes that chose their ids")
    ids = {entry.message.node_id for entry in await cluster.found(BEAT)}
    told = f"{len(ids)}: {', '.join(sorted(ids))}"
    demand(len(ids) == _MACHINE, f"{_MACHINE} ids", told, f"{_MACHINE} nodes of one machine beat")
