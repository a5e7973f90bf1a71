"""Taking a job over: subscribe, then acknowledge, and the store follows (seed 4, Scenario A, step 5; Scenario B)."""

from collections.abc import Mapping, Sequence

from holdfast.check.finding import Inconclusive, demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.conformance.coordinator import messages
from holdfast.conformance.coordinator.base import of_job
from holdfast.conformance.coordinator.bus import Entry
from holdfast.conformance.coordinator.client import Cluster
from holdfast.conformance.coordinator.crashes import firsts, heard, kill, no_crash_handoff
from holdfast.conformance.coordinator.deeds import Deeds
from holdfast.conformance.coordinator.ghost import silent_id
from holdfast.conformance.coordinator.leaving import Leaving
from holdfast.conformance.coordinator.messages import Job
from holdfast.conformance.coordinator.store import SEED_JOB, Record
from holdfast.conformance.coordinator.takes import drained
from holdfast.conformance.coordinator.wire import ACK, HANDOFF, SHUTDOWN, says

# Jobs of a node that leaves beside one other, and beside two.
_FEW, _SOME = 3, 5
_CROWD = "first_leader + load_shown + heartbeat_interval + claim_latency"


async def _owner_leaves(cluster: Cluster) -> tuple[Job, Entry]:
    """Tells the owner of a running job to stop, beside another node; returns the job, and the ACK."""
    (node, *_) = await cluster.followers()
    crowd = await cluster.jobs.at_least(node, 1)
    (job, *_) = await cluster.jobs.of_node(await cluster.id_of(node), crowd.jobs)
    leaving = cluster.leave(node)
    with cluster.context.arranging("CO-TAKE-03"):
        what = f"an ACK for {job.id}"
        give_up = cluster.never("first_offer") + cluster.never("claim_latency")
        ack = await cluster.entry(
            ACK, of_job(job.id), give_up=give_up, since=leaving.begun, what=what, nodeId=await cluster.id_of(node)
        )
    return job, ack


@verifies("CO-TAKE-02", isolation="disruptive", nodes=2, waits=f"{_CROWD} + claim_latency + event_latency")
async def test_the_new_owner_processes_what_comes_right_after_its_ack(cluster: Cluster) -> None:
    job, ack = await _owner_leaves(cluster)
    published = await cluster.worker.logs(job)
    await cluster.groups.done([job], "event_latency", since=published)
    expect(await cluster.groups.reader(job), ack.message.new_owner, why=f"who reads {job.id}, and newOwner in the ACK")


@verifies("CO-TAKE-02", part=2, isolation="disruptive", nodes=2, waits=f"{_CROWD} + claim_latency + event_latency")
async def test_the_new_owner_subscribes_before_it_acknowledges(cluster: Cluster, deeds: Deeds) -> None:
    job, ack = await _owner_leaves(cluster)
    node = await cluster.node_of(ack.message.new_owner)
    published = await cluster.worker.logs(job)
    with cluster.context.arranging("CO-EVENT-01"):
        await cluster.groups.done([job], "event_latency", since=published)
    acknowledged = deeds.writes(ack, node)
    if not acknowledged:
        raise Inconclusive(f"the tap does not show by which command {node} sent {ack.describe()}")
    for queue, first in deeds.first_subscriptions(job, node).items():
        if not first:
            raise Inconclusive(f"the tap does not show when {node} subscribed to {queue}")
        deeds.tap.show([*first, *acknowledged])
        early = acknowledged[0].at - first[0].at
        seen = f"the ACK was sent {-early * 1000:.1f} ms before"
        demand(early > 0, f"{node} subscribed to {queue} before it sent its ACK", seen, first[0].describe())


@verifies("CO-TAKE-02", part=3, isolation="disruptive", nodes=2, waits=f"{_CROWD} + claim_latency")
async def test_the_store_names_the_new_owner_when_it_acknowledges(cluster: Cluster) -> None:
    job, ack = await _owner_leaves(cluster)
    owner = (await cluster.store.job(job)).owner
    expect(owner, ack.message.new_owner, why=f"the owner of {job.id} once its ACK was seen")


# --- CO-TAKE-03


@verifies("CO-TAKE-03", isolation="disruptive", nodes=2, waits=f"{_CROWD} + first_offer + claim_latency + clean_drain")
async def test_each_takeover_is_acknowledged_on_the_topic_of_the_node_that_leaves(cluster: Cluster) -> None:
    (node, *_) = await cluster.followers()
    (other,) = cluster.others(node)
    crowd = await cluster.jobs.at_least(node, _FEW)
    one, its = await cluster.id_of(node), await cluster.id_of(other)
    leaving = cluster.leave(node)
    for offer in await _all_offered(cluster, leaving, crowd.count):
        job_id = offer.message.job_id
        what = f"an ACK for {job_id} on the topic of {node}"
        ack = await cluster.entry_in_time(
            ACK, of_job(job_id), bound="claim_latency", since=offer.at, what=what, nodeId=one
        )
        expect(ack.message, says(jobId=job_id, newOwner=its), why=f"the ACK of {other}, which takes the job")
    await leaving.ends()
    await cluster.no_entry(ACK, since=leaving.begun, why=f"{other} waits for no ACK", nodeId=its)


@verifies("CO-TAKE-03", part=2, isolation="disruptive", nodes=2, waits=f"{_CROWD} + clean_drain")
async def test_the_new_owner_in_the_ack_is_the_one_in_the_store(cluster: Cluster) -> None:
    gone = await drained(cluster, _FEW)
    for job_id, owner in gone.owners.items():
        expect((await cluster.store.job(job_id)).owner, owner, why=f"the owner of {job_id}, and newOwner in its ACK")


async def _all_offered(cluster: Cluster, leaving: Leaving, count: int) -> list[Entry]:
    """Waits for the first handoff entries of so many jobs; returns them."""

    async def look() -> list[Entry] | None:
        found = list(firsts(await leaving.offers()).values())
        return found if len(found) >= count else None

    with cluster.context.arranging("CO-DRAIN-04"):
        what = f"handoffs of {count} jobs of {leaving.node}"
        entries, _ = await cluster.T.until(look, give_up=cluster.never("first_offer"), since=leaving.begun, what=what)
    return entries


# --- CO-TAKE-04


@verifies("CO-TAKE-04", isolation="disruptive", nodes=3, waits=f"{_CROWD} + clean_drain + crash_watch")
async def test_no_crash_recovery_follows_a_drain_that_was_acknowledged(cluster: Cluster, T: SpecTime) -> None:
    gone = await drained(cluster, _SOME)
    await T.sleep_until(gone.exited, T.crash_watch, "handoffs of jobs that have an owner")
    await heard(cluster, cluster.others(gone.leaving.node), since=gone.leaving.begun)
    await no_crash_handoff(cluster, since=gone.leaving.begun, why=f"all jobs of {gone.leaving.node} were acknowledged")


@verifies("CO-TAKE-04", part=2, isolation="disruptive", nodes=3, waits=f"{_CROWD} + clean_drain + claim_latency")
async def test_the_store_moves_each_job_from_the_old_list_to_the_new_one(cluster: Cluster) -> None:
    (node, *_) = await cluster.followers()
    crowd = await cluster.jobs.at_least(node, _SOME)
    old = await cluster.id_of(node)
    leaving = cluster.leave(node)
    for offer in await _all_offered(cluster, leaving, crowd.count):
        await _moves(cluster, offer, old)
    await leaving.ends()
    left = await cluster.store.jobs_of(old)
    demand(not left, f"no job of {node}", ", ".join(sorted(left)[:5]), "it has handed off all of them")
    living = [await cluster.id_of(other) for other in cluster.others(node)]
    for each in await leaving.offers():
        job_id = each.message.job_id
        expect((await cluster.store.job(job_id)).owner, *living, why=f"the owner of {job_id} now that {node} is gone")


async def _moves(cluster: Cluster, offer: Entry, old: str) -> None:
    """Waits for the ACK of a handoff and judges that the lists of both nodes have followed it."""
    job_id = offer.message.job_id
    with cluster.context.arranging("CO-TAKE-03"):
        ack = await cluster.entry(
            ACK, of_job(job_id), give_up=cluster.never("claim_latency"), since=offer.at, what="its ACK", nodeId=old
        )
    new = ack.message.new_owner

    async def moved() -> bool:
        return job_id not in await cluster.store.jobs_of(old) and job_id in await cluster.store.jobs_of(new)

    await cluster.comes(moved, "claim_latency", since=ack.at, what=f"{job_id} to move from {old} to {new} in the store")


# --- CO-TAKE-05


@verifies("CO-TAKE-05", isolation="quiet", waits="first_leader + batch_latency", needs_hooks=[SEED_JOB])
async def test_a_handoff_with_job_and_reason_alone_is_enough(cluster: Cluster) -> None:
    await cluster.leader()
    ghost = silent_id()
    job = await cluster.store.seed(ghost)
    written = await cluster.bus.publish(HANDOFF, messages.handoff(job, SHUTDOWN, bare=True))
    what = f"a real node as owner of {job.id}"
    real = {await cluster.id_of(node) for node in cluster.nodes}
    await cluster.store.becomes(job, lambda seen: seen.owner in real, "batch_latency", since=written, what=what)
    what = f"an ACK for {job.id} on the topic of its previous owner"
    await cluster.entry_in_time(ACK, of_job(job.id), bound="batch_latency", since=written, what=what, nodeId=ghost)


async def _recorded(cluster: Cluster, node: str) -> dict[str, Record]:
    """Returns what the store says of the jobs of a node that owns some."""
    await cluster.jobs.at_least(node, _FEW)
    job_ids = await cluster.store.jobs_of(await cluster.id_of(node))
    with cluster.context.arranging("CO-ASSIGN-02"):
        demand(job_ids, f"jobs of {node}", "none", "in the store, as its heartbeat counts some")
    return {job_id: await cluster.store.job(job_id) for job_id in job_ids}


def _names_owner_and_execution(entries: Sequence[Entry], before: Mapping[str, Record]) -> None:
    """Judges that these handoffs, where they say them, name the owner and the execution that were recorded."""
    for each in entries:
        record = before[each.message.job_id]
        expect(each.message.text("fromNodeId") or record.owner, record.owner, why=f"fromNodeId in {each.describe()}")
        expect(each.message.history_id or record.history_id, record.history_id, why=f"executionId in {each.describe()}")


@verifies("CO-TAKE-05", part=2, isolation="disruptive", nodes=2, waits=f"{_CROWD} + first_offer")
async def test_handoffs_of_a_node_that_leaves_name_owner_and_execution(cluster: Cluster) -> None:
    (node, *_) = await cluster.followers()
    before = await _recorded(cluster, node)
    leaving = cluster.leave(node)
    entries = await _all_offered(cluster, leaving, len(before))
    _names_owner_and_execution([each for each in entries if each.message.job_id in before], before)


@verifies("CO-TAKE-05", part=3, isolation="disruptive", nodes=2, waits=f"{_CROWD} + crash_handoff")
async def test_handoffs_of_a_crash_name_owner_and_execution(cluster: Cluster) -> None:
    (node, *_) = await cluster.followers()
    before = await _recorded(cluster, node)
    crash = await kill(cluster, node)
    with cluster.context.arranging("CO-CRASH-01"):
        found = await crash.offers(count=len(before))
    _names_owner_and_execution([each for job_id, each in found.items() if job_id in before], before)


# --- CO-TAKE-07


@verifies("CO-TAKE-07", isolation="disruptive", nodes=3, waits=f"{_CROWD} + crash_handoff + claim_latency")
async def test_crash_handoffs_are_acknowledged(cluster: Cluster, T: SpecTime) -> None:
    (node, *_) = await cluster.followers()
    await cluster.jobs.at_least(node, 1)
    dead = await cluster.id_of(node)
    crash = await kill(cluster, node)
    found = await crash.offers()
    living = [await cluster.id_of(other) for other in cluster.others(node)]
    for job_id, entry in found.items():
        what = f"the NodeCrash entry of {job_id}"
        T.at_most("crash_handoff", since=crash.last.at, seen=entry.at, tolerance="tolerance", what=what)
        waits = entry.message.text("ackTo") or dead
        what = f"an ACK for {job_id} on the topic of {waits}"
        ack = await cluster.entry_in_time(
            ACK, of_job(job_id), bound="claim_latency", since=entry.at, what=what, nodeId=waits
        )
        expect(ack.message.new_owner, *living, why=f"newOwner of {job_id}, which is to be a node that lives")
