"""Who takes a job over, and how often (seed 4, Scenario A, step 4; Hybrid ACK Strategy, case B)."""

from collections.abc import Sequence

from holdfast.check.finding import demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.conformance.coordinator import messages
from holdfast.conformance.coordinator.bus import Entry, post
from holdfast.conformance.coordinator.client import Cluster
from holdfast.conformance.coordinator.crashes import read_anew, same_jobs, unchanged
from holdfast.conformance.coordinator.ghost import silent_id
from holdfast.conformance.coordinator.store import SEED_JOB
from holdfast.conformance.coordinator.takes import drained, one_owner_each
from holdfast.conformance.coordinator.wire import ACK, HANDOFF, SHUTDOWN
from holdfast.conformance.coordinator.worker import numbers

# Jobs that a node hands off at least, where the row counts them, and copies of handoffs that are written.
_MANY, _MOST, _COPIED = 20, 30, 5
_TWICE, _LOGS = 2, 10
_DRAINED = "first_leader + load_shown + heartbeat_interval + claim_latency + clean_drain"


async def _copied(cluster: Cluster, entries: Sequence[Entry]) -> None:
    """Writes verbatim copies of these handoffs, twice, and waits until they have surely been looked at."""
    T = cluster.T
    for number in range(_TWICE):
        if number:
            await T.sleep(T.quick_gap, "the next copies")
        for each in entries:
            await cluster.bus.publish_fields(HANDOFF, each.fields)
    await T.sleep(T.batch_latency, "further takeovers")


@verifies("CO-TAKE-01", isolation="disruptive", nodes=3, waits=f"{_DRAINED} + quick_gap + batch_latency")
async def test_each_handoff_has_one_new_owner_and_copies_change_nothing(cluster: Cluster) -> None:
    gone = await drained(cluster, _MANY)
    await _copied(cluster, list(gone.entries.values())[:_COPIED])
    after = one_owner_each(gone.entries, await gone.leaving.acks())
    unchanged(gone.owners, after, "new owners in ACKs, before copies of handoffs were written and after that")


@verifies("CO-TAKE-01", part=2, isolation="disruptive", nodes=3, waits=f"{_DRAINED} + quick_gap + 3*batch_latency")
async def test_the_new_owner_is_the_one_reader_and_copies_change_nothing(cluster: Cluster) -> None:
    gone = await drained(cluster, _MANY)
    before = await read_anew(cluster, gone.jobs, "batch_latency")
    unchanged(gone.owners, before, "new owners in ACKs, and who reads the job then")
    await _copied(cluster, [gone.entries[job.id] for job in gone.jobs[:_COPIED]])
    after = await read_anew(cluster, gone.jobs, "batch_latency")
    unchanged(gone.owners, after, "new owners in ACKs, and who reads the job once copies of handoffs were written")


@verifies("CO-TAKE-01", part=3, isolation="disruptive", nodes=3, waits=_DRAINED)
async def test_the_store_has_each_job_that_was_handed_off_once(cluster: Cluster) -> None:
    gone = await drained(cluster, _MANY)
    lists = [await cluster.store.jobs_of(await cluster.id_of(node)) for node in cluster.others(gone.leaving.node)]
    both = lists[0] & lists[1]
    demand(not both, "each job in one list", f"in both: {', '.join(sorted(both)[:5])}", "jobs_of of two nodes")
    same_jobs((lists[0] | lists[1]) & set(gone.entries), gone.jobs, "the lists of both to hold jobs", "handed off")


@verifies(
    "CO-TAKE-01",
    part=3,
    isolation="quiet",
    nodes=2,
    waits="first_leader + 2*batch_latency + 2*quick_gap",
    needs_hooks=[SEED_JOB],
)
async def test_copies_of_a_handoff_make_one_owner_who_stores_each_log_once(cluster: Cluster, T: SpecTime) -> None:
    await cluster.leader()
    ghost = silent_id()
    job = await cluster.store.seed(ghost)
    said = messages.handoff(job, SHUTDOWN, from_node=ghost)
    (written, _) = await cluster.bus.publish_all([post(HANDOFF, said)] * 2)
    what = f"a new owner of {job.id}"
    owned, _ = await cluster.store.becomes(
        job, lambda seen: seen.owner != ghost, "batch_latency", since=written, what=what
    )
    for _ in range(_TWICE):
        await T.sleep(T.quick_gap, "the next copy")
        await cluster.bus.publish(HANDOFF, said)

    async def stays() -> None:
        expect(
            (await cluster.store.job(job)).owner, owned.owner, why=f"the owner of {job.id} after copies of its handoff"
        )

    await cluster.throughout(stays, T.batch_latency, "further takeovers")
    one_owner_each([job.id], await cluster.found(ACK, nodeId=ghost))
    published = await cluster.worker.logs(job, _LOGS)
    await cluster.groups.done([job], "batch_latency", since=published)
    stored = sorted(numbers(await cluster.store.logs(job)))
    expect(stored, cluster.worker.of(job).numbers, why="numbers of the logs that are stored, each once")


# --- CO-TAKE-06


@verifies("CO-TAKE-06", isolation="disruptive", nodes=3, waits=_DRAINED)
async def test_the_survivors_share_the_jobs_of_a_node_that_leaves(cluster: Cluster, T: SpecTime) -> None:
    gone = await drained(cluster, _MOST)
    shares = dict.fromkeys(cluster.others(gone.leaving.node), 0)
    for owner in gone.owners.values():
        shares[await cluster.node_of(owner)] += 1
    told = ", ".join(f"{node}: {share}" for node, share in shares.items())
    demand(all(shares.values()), "each of the remaining nodes to take some", told, f"{len(gone.owners)} handoffs")
    least = T.count("min_take_share") * len(gone.owners) / _MOST
    if min(shares.values()) < least:
        cluster.context.warn(f"min_take_share: of {len(gone.owners)} handoffs at least {least:.0f} each, seen {told}")


@verifies(
    "CO-TAKE-06",
    part=2,
    isolation="quiet",
    nodes=2,
    waits="first_leader + ownership_latency",
    needs_hooks=[SEED_JOB],
)
async def test_two_nodes_share_a_batch_of_handoffs(cluster: Cluster) -> None:
    await cluster.leader()
    await cluster.beats.first_of_all(cluster.nodes)
    ghost = silent_id()
    jobs = [await cluster.store.seed(ghost) for _ in range(_MOST)]
    posts = [post(HANDOFF, messages.handoff(job, SHUTDOWN, from_node=ghost)) for job in jobs]
    (*_, written) = await cluster.bus.publish_all(posts)

    async def taken() -> set[str] | None:
        owners = {(await cluster.store.job(job)).owner for job in jobs}
        return owners if ghost not in owners else None

    what = f"a new owner of each of {_MOST} jobs"
    owners, _ = await cluster.comes(taken, "ownership_latency", since=written, what=what)
    for node in cluster.nodes:
        told = f"{', '.join(sorted(owners))} took them all"
        demand(await cluster.id_of(node) in owners, f"{node} to take some of {_MOST} jobs", told, "offered in one step")
