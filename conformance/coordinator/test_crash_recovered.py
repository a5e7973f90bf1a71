"""Who has a dead node's jobs in the end (seed 4, Scenario B, step 5, and case C; 7, Follower Crashes)."""

from holdfast.check.finding import demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.coordinator.base import of_job
from holdfast.conformance.coordinator.bus import Entry
from holdfast.conformance.coordinator.client import Cluster
from holdfast.conformance.coordinator.crashes import Crash, crash_entries, firsts, kill, read_anew
from holdfast.conformance.coordinator.ghost import playing
from holdfast.conformance.coordinator.messages import Job
from holdfast.conformance.coordinator.wire import COMPLETED, HANDOFF, RUNNING

# Offers until a node owns one of them, jobs of four nodes, and how often offers are made.
_OFFERS, _CROWDED, _TRIES = 6, 60, 5
_CROWD = "first_leader + load_shown + heartbeat_interval + claim_latency"


# --- CO-CRASH-06


async def _killed_before_running(cluster: Cluster) -> tuple[str, list[Job], Moment]:
    """Kills a node that owns jobs of which nobody has reported yet; returns it, all jobs, and when.

    Then Running and Completed of all of them are published. Only the node's heartbeat tells that it owns some.
    """
    (node, *_) = await cluster.followers()
    jobs = list[Job]()
    for _ in range(_TRIES):
        since = cluster.T.now()
        jobs += await cluster.jobs.inject(_OFFERS)
        settled = Moment(since.lo, since.hi + cluster.T.claim_latency)
        if (await cluster.beats.next(node, since=settled)).job_count:
            break
    crash = await kill(cluster, node)
    with cluster.context.arranging("CO-ASSIGN-03"):
        demand(crash.count, f"{node} to own some of {len(jobs)} jobs", "none by its last heartbeat", "it was offered")
    for job in jobs:
        await cluster.worker.status(job, RUNNING, COMPLETED)
    return node, jobs, crash.killed


@verifies("CO-CRASH-06", isolation="disruptive", nodes=3, waits=f"{_CROWD} + gap_processed")
async def test_jobs_that_nobody_has_reported_yet_are_recovered(cluster: Cluster) -> None:
    node, jobs, killed = await _killed_before_running(cluster)
    await cluster.groups.done(jobs, "gap_processed", since=killed)
    living = [await cluster.id_of(other) for other in cluster.others(node)]
    for job_id, reader in (await cluster.groups.readers(jobs)).items():
        expect(reader, *living, why=f"who reads {job_id}")


@verifies("CO-CRASH-06", part=2, isolation="disruptive", nodes=3, waits=f"{_CROWD} + gap_processed")
async def test_the_store_learns_the_end_of_jobs_that_nobody_had_reported_yet(cluster: Cluster) -> None:
    _, jobs, killed = await _killed_before_running(cluster)
    for job in jobs:
        await cluster.store.is_status(job, COMPLETED, "gap_processed", since=killed)


# --- CO-CRASH-07


async def _two_killed(cluster: Cluster) -> tuple[list[Job], dict[str, str], list[Crash]]:
    """Kills two of four nodes that own jobs, at the same time; returns the jobs, their readers, and the crashes."""
    one, two, *_ = await cluster.followers()
    jobs = await cluster.jobs.running(_CROWDED)
    readers = await cluster.groups.readers(jobs)
    since = cluster.T.now()
    for node in (one, two):  # the same check of the leader is to find both of them dead
        await cluster.beats.next(node, since=since)
    crashes = await cluster.parallel([lambda: kill(cluster, one), lambda: kill(cluster, two)])
    return jobs, readers, crashes


@verifies(
    "CO-CRASH-07",
    isolation="disruptive",
    nodes=4,
    waits="first_leader + batch_latency + heartbeat_interval + orphans_owned",
)
async def test_survivors_take_the_jobs_of_two_dead_nodes(cluster: Cluster) -> None:
    jobs, readers, crashes = await _two_killed(cluster)
    dead = {await cluster.id_of(crash.node): crash for crash in crashes}
    orphans = [job for job in jobs if readers[job.id] in dead]
    for id_, crash in dead.items():
        its = {job.id for job in orphans if readers[job.id] == id_}
        with cluster.context.arranging("CO-ASSIGN-03"):
            demand(its, f"jobs of {crash.node}", "none", "it was offered some of 60 jobs")
        await _all_in_time(cluster, crash, its)
    living = {await cluster.id_of(node) for node in cluster.others(*(crash.node for crash in crashes))}
    killed = min((crash.killed for crash in crashes), key=lambda each: each.lo)
    await cluster.jobs.have_reader(orphans, "orphans_owned", since=killed, among=living)
    after = await read_anew(cluster, orphans, "batch_latency")
    strangers = [f"{job_id}: {reader}" for job_id, reader in after.items() if reader not in living]
    demand(not strangers, "a reader that lives for each orphan", "; ".join(strangers[:5]), "two nodes are left")


async def _all_in_time(cluster: Cluster, crash: Crash, job_ids: set[str]) -> None:
    """Waits for the NodeCrash entries of all of these jobs of a dead node and judges their time."""
    T = cluster.T

    async def look() -> list[Entry] | None:
        found = firsts(await crash_entries(cluster, since=crash.last.at))
        return [found[job_id] for job_id in job_ids] if job_ids <= set(found) else None

    what = f"NodeCrash entries of {len(job_ids)} jobs of {crash.node}"
    entries, _ = await T.until(look, give_up=T.crash_handoff + 3 * T.tolerance, since=crash.last.at, what=what)
    for each in entries:
        what = f"the NodeCrash entry of {each.message.job_id}, a job of {crash.node}"
        T.at_most("crash_handoff", since=crash.last.at, seen=each.at, tolerance="tolerance", what=what)


@verifies(
    "CO-CRASH-07",
    part=2,
    isolation="disruptive",
    nodes=4,
    waits="first_leader + batch_latency + heartbeat_interval + orphans_owned",
)
async def test_the_store_has_all_jobs_of_two_dead_nodes_at_the_survivors(cluster: Cluster) -> None:
    jobs, _, crashes = await _two_killed(cluster)
    killed = min((crash.killed for crash in crashes), key=lambda each: each.lo)
    gone = [crash.node for crash in crashes]
    living = [await cluster.id_of(node) for node in cluster.others(*gone)]
    wanted = {job.id for job in jobs}

    async def moved() -> list[set[str]] | None:
        lists = [await cluster.store.jobs_of(id_) for id_ in living]
        return lists if wanted <= lists[0] | lists[1] else None

    what = f"{len(jobs)} jobs in the lists of the two nodes that are left"
    (one, two), _ = await cluster.comes(moved, "orphans_owned", since=killed, what=what)
    demand(
        not one & two, "each job in one list", f"in both: {', '.join(sorted(one & two)[:5])}", "jobs_of of two nodes"
    )
    for node in gone:
        left = await cluster.store.jobs_of(await cluster.id_of(node))
        demand(not left, f"no job of {node}", ", ".join(sorted(left)[:5]), "others have all of them")


# --- CO-CRASH-08


async def _given_up(cluster: Cluster) -> Job:
    """Lets the only node leave beside a ghost that takes its handoffs and sends no ACK; then the ghost is gone too.

    Returns the job that was given up.
    """
    await cluster.leader()
    (job,) = await cluster.jobs.owned(1)
    node = cluster.alone
    async with playing(cluster.ghost()) as ghost:
        await ghost.compete()
        leaving = cluster.leave(node)
        await leaving.offer(job)
        await leaving.ends()
    return job


_GIVEN_UP = "first_leader + load_shown + handoff_hard_timeout + started_leader_handoff + claim_latency"


@verifies("CO-CRASH-08", isolation="disruptive", nodes=1, waits=_GIVEN_UP)
async def test_a_job_that_was_given_up_is_handed_to_the_next_node(cluster: Cluster, T: SpecTime) -> None:
    before = await cluster.lock.led()
    job = await _given_up(cluster)
    new, started = await cluster.start_new()
    _, taken = await cluster.lock.taken("leader_takeover", since=started, other_than=before.value, owner="CO-LOCK-03")
    first = (await cluster.beats.first_of_all([new]))[new].at
    later = max(taken, Moment(first.lo + T.dead_node_timeout, first.hi + T.dead_node_timeout), key=lambda at: at.hi)
    what = f"a handoff of {job.id} by {new}"
    give_up = later.hi - started.hi + T.orphan_check_interval + 3 * T.tolerance
    entry = await cluster.entry(HANDOFF, of_job(job.id), give_up=give_up, since=started, what=what)
    T.at_most("orphan_check_interval", since=later, seen=entry.at, tolerance="tolerance", what=what)
    T.at_most("started_leader_handoff", since=started, seen=entry.at, what=what)
    await cluster.jobs.have_reader([job], "claim_latency", since=entry.at, among=[await cluster.id_of(new)])


@verifies("CO-CRASH-08", part=2, isolation="disruptive", nodes=1, waits=_GIVEN_UP)
async def test_the_mark_of_a_job_that_was_given_up_is_cleared(cluster: Cluster) -> None:
    job = await _given_up(cluster)
    with cluster.context.arranging("CO-ACK-06"):
        marked = await cluster.store.job(job)
        demand(marked.orphan_pending, "ORPHAN_PENDING", marked.describe(), "no node has acknowledged it")
    new, started = await cluster.start_new()
    what = f"{job.id} of {new}, and no longer marked"
    owner = await cluster.id_of(new)
    await cluster.store.becomes(
        job,
        lambda seen: seen.owner == owner and not seen.orphan_pending,
        "started_leader_handoff",
        since=started,
        what=what,
    )
