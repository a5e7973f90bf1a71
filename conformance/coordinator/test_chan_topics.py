"""Topics reach every coordinator, and what is no message blocks no queue (seed 2; seed 4, Scenario B)."""

from holdfast.check.finding import demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.conformance.coordinator import messages
from holdfast.conformance.coordinator.base import of_job
from holdfast.conformance.coordinator.bus import post
from holdfast.conformance.coordinator.client import Cluster
from holdfast.conformance.coordinator.deeds import Deeds
from holdfast.conformance.coordinator.ghost import silent_id
from holdfast.conformance.coordinator.messages import Job, new_id
from holdfast.conformance.coordinator.store import SEED_JOB
from holdfast.conformance.coordinator.wire import (
    ASSIGNED,
    BEAT,
    COMPLETED,
    HANDOFF,
    NODE_CRASH,
    SHUTDOWN,
    WORKER_BEAT,
)

_TOPICS = (WORKER_BEAT, BEAT)
_BEATS, _JOBS, _ROUNDS = 9, 30, 3


async def _nobody_shares(cluster: Cluster) -> None:
    """Judges that no two nodes read a topic through one group."""
    for kind in _TOPICS:
        for group in await cluster.groups.of(kind):
            readers = {await cluster.groups.id_of(each) or each.name for each in await cluster.groups.consumers(group)}
            told = f"{' and '.join(sorted(readers))} in group {group.name}"
            demand(len(readers) < 2, "every node to get every message", told, group.queue)


async def _heard_by_all(cluster: Cluster) -> None:
    """Judges the form of the topics: every node has subscribed, or none shares a group with another."""
    if not cluster.bus.pubsub:
        await _nobody_shares(cluster)
        return
    for kind in _TOPICS:
        topic = cluster.names.channel(kind)
        _, count = await cluster.bus.ask("PUBSUB", "NUMSUB", topic)
        # The suite itself subscribes to patterns, which do not count here.
        demand(int(count) >= len(cluster.live), f"{len(cluster.live)} subscribers", str(count), topic)


@verifies("CO-CHAN-05", isolation="quiet", nodes=3, waits="first_leader + ownership_latency + peer_watch")
async def test_heartbeats_of_all_reach_all(cluster: Cluster, T: SpecTime) -> None:
    await cluster.leader()
    await cluster.beats.first_of_all(cluster.nodes)
    await cluster.jobs.running(_JOBS)
    since = T.now()
    for number in range(_BEATS):
        await cluster.worker.beat()
        await T.sleep_until(since, (number + 1) * T.quick_gap, "the next heartbeat of the worker")
    await _heard_by_all(cluster)
    await T.sleep_until(since, T.peer_watch, "a peer that is taken for dead")
    await cluster.no_entry(
        HANDOFF, lambda each: each.message.reason == NODE_CRASH, since=since, why="all nodes are well and beat"
    )


@verifies("CO-CHAN-05", part=2, isolation="quiet", nodes=3, waits="first_leader + 3*heartbeat_interval + event_latency")
async def test_every_node_reads_every_heartbeat(cluster: Cluster, deeds: Deeds, T: SpecTime) -> None:
    await cluster.beats.first_of_all(cluster.nodes)
    since = T.now()
    for _ in range(_BEATS):
        await cluster.worker.beat()
    await T.sleep(2 * T.heartbeat_interval + T.tolerance, "heartbeats of all nodes")
    written = {kind: await cluster.found(kind, since=since) for kind in _TOPICS}
    await T.sleep(T.event_latency, "the reads of the last ones")
    for node in cluster.nodes:
        for kind, entries in written.items():
            topic = cluster.names.channel(kind)
            got = deeds.given(topic, node)
            missed = [each.id or each.message.describe() for each in entries if not got(each)]
            demand(not missed, f"{node} to read every message", f"missed: {', '.join(missed[:5])}", topic)


@verifies("CO-CHAN-05", part=3, waits="first_leader + event_latency")
async def test_a_worker_that_beats_is_known(cluster: Cluster) -> None:
    worker = f"worker-{new_id()}"
    beaten = await cluster.worker.beat(worker)

    async def known() -> bool:
        return worker in await cluster.store.workers()

    await cluster.comes(known, "event_latency", since=beaten, what=f"{worker} in the store")


@verifies(
    "CO-CHAN-05",
    part=4,
    isolation="disruptive",
    nodes=4,
    waits="first_leader + 3*(crash_watch + crash_handoff + leader_takeover)",
    needs_hooks=[SEED_JOB],
)
async def test_whoever_leads_knows_who_beats_and_who_does_not(cluster: Cluster, T: SpecTime) -> None:
    for number in range(_ROUNDS):
        leader = await cluster.leader()
        ghost = cluster.ghost()
        since = await ghost.live()
        job = await cluster.store.seed(ghost.id)
        crash = of_job(job.id, NODE_CRASH)
        await T.sleep_until(since, T.crash_watch, "a peer that beats and is taken for dead")
        await cluster.no_entry(HANDOFF, crash, since=since, why="its owner beats")
        ghost.on_time()
        last = await ghost.fall_silent()
        give_up = 2 * (T.crash_handoff + T.tolerance)
        entry = await cluster.entry(HANDOFF, crash, give_up=give_up, since=last, what=f"a NodeCrash entry of {job.id}")
        T.at_most("crash_handoff", since=last, seen=entry.at, tolerance="tolerance", what="the handoff of its job")
        if number + 1 < _ROUNDS:
            old = await cluster.lock.value()
            killed = await cluster.kill(leader)
            await cluster.lock.taken("leader_takeover", since=killed, other_than=old, owner="CO-LOCK-03")


# --- CO-CHAN-07


@verifies("CO-CHAN-07", isolation="quiet", nodes=1, waits="first_leader + load_shown + 3*heartbeat_interval")
async def test_entries_that_are_no_offers_block_no_offers(cluster: Cluster, T: SpecTime) -> None:
    first = await cluster.beats.first_of_all(cluster.nodes)
    for _ in cluster.nodes:
        await cluster.bus.publish_fields(ASSIGNED, {"other": "x"})
        await cluster.bus.publish_text(ASSIGNED, "{")
    valid = 2 * len(first)
    since = T.now()
    await cluster.jobs.inject(valid)
    await cluster.beats.add_up(cluster.nodes, valid, "load_shown", since=since)
    again = T.now()
    for node in cluster.nodes:
        one = await cluster.beats.next(node, since=again)
        await cluster.beats.next(node, since=one.at)


@verifies(
    "CO-CHAN-07",
    part=2,
    isolation="quiet",
    nodes=1,
    waits="first_leader + batch_latency + heartbeat_interval",
    needs_hooks=[SEED_JOB],
)
async def test_handoffs_of_finished_and_unknown_jobs_are_set_aside(cluster: Cluster, T: SpecTime) -> None:
    await cluster.beats.first_of_all(cluster.nodes)
    owner = silent_id()
    finished, running, unknown = await cluster.store.seed(owner, COMPLETED), await cluster.store.seed(owner), Job()
    since = T.now()
    posts = [post(HANDOFF, messages.handoff(job, SHUTDOWN, from_node=owner)) for job in (finished, unknown, running)]
    await cluster.bus.publish_all(posts)
    ids = {await cluster.id_of(node) for node in cluster.nodes}
    what = f"a new owner of {running.id}"
    await cluster.store.becomes(running, lambda seen: seen.owner in ids, "batch_latency", since=since, what=what)
    await T.sleep(T.heartbeat_interval, "owners of the other two")
    for id_ in ids:
        owned = await cluster.store.jobs_of(id_)
        wrong = sorted(owned & {finished.id, unknown.id})
        demand(not wrong, "neither of the other two jobs", ", ".join(wrong), f"jobs of {id_}")
    expect((await cluster.store.job(finished)).status, COMPLETED, why="the status of the finished job")
