"""Who owns a job (seed 3, Job Distribution, step 2): nodes compete, one wins, and that is stored before the ACK."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from holdfast.check.finding import Inconclusive, NotObservable, demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.coordinator.client import Cluster
from holdfast.conformance.coordinator.deeds import SCRIPTS, Deeds
from holdfast.conformance.coordinator.ghost import silent_id
from holdfast.conformance.coordinator.groups import JOB_QUEUES
from holdfast.conformance.coordinator.logged import logged_once
from holdfast.conformance.coordinator.messages import Job
from holdfast.conformance.coordinator.store import JOB, JOBS_OF, QUERY_LOGS, Record
from holdfast.conformance.coordinator.wire import ASSIGNED
from holdfast.target.tap import Command

# Jobs that are offered once, jobs that are offered twice, and the logs of each of those.
_ONCE, _TWICE, _LOGS = 90, 30, 10


async def _owned_by_one(cluster: Cluster, jobs: Sequence[Job]) -> None:
    """Judges that one node reads each job, through one group on each of its queues: each entry went to one node."""
    for job in jobs:
        readers = await cluster.groups.ever_read(job)
        demand(len(readers) == 1, "one reader of each job", f"{' and '.join(sorted(readers)) or 'nobody'}", job.id)
        for kind in JOB_QUEUES:
            groups = [each.name for each in await cluster.groups.of(kind, **job.ids)]
            demand(len(groups) <= 1, "each entry given to one node", f"groups {', '.join(groups)}", job.id)


async def _offered_twice(cluster: Cluster) -> list[Job]:
    """Returns jobs that were offered twice, both offers in one step, claim_latency ago."""
    jobs = [Job() for _ in range(_TWICE)]
    for job in jobs:
        await cluster.jobs.inject(jobs=[job, job])
    await cluster.T.sleep(cluster.T.claim_latency, "both offers of each job to be dealt with")
    return jobs


async def _with_logs(cluster: Cluster, jobs: Sequence[Job]) -> None:
    """Publishes logs one by one, so that each reader of a job would be given some, until all are processed."""
    published = cluster.T.now()
    for _ in range(_LOGS):
        for job in jobs:
            published = await cluster.worker.logs(job)
    await cluster.groups.done(jobs, "batch_latency", since=published, owner="CO-EVENT-02")


@verifies("CO-ASSIGN-01", isolation="quiet", nodes=3, waits="first_leader + ownership_latency")
async def test_each_job_has_one_reader(cluster: Cluster) -> None:
    await cluster.beats.first_of_all(cluster.nodes)
    jobs = await cluster.jobs.inject(_ONCE)
    offered = cluster.T.now()
    await cluster.worker.runs(*jobs)
    await cluster.groups.has_reader(jobs, "ownership_latency", since=offered)
    await _owned_by_one(cluster, jobs)


@verifies("CO-ASSIGN-01", isolation="quiet", nodes=3, waits="first_leader + claim_latency + batch_latency")
async def test_a_job_that_is_offered_twice_has_one_reader(cluster: Cluster) -> None:
    await cluster.beats.first_of_all(cluster.nodes)
    jobs = await _offered_twice(cluster)
    await _with_logs(cluster, jobs)
    await _owned_by_one(cluster, jobs)


async def _records(cluster: Cluster, jobs: Sequence[Job]) -> list[Record]:
    return await cluster.parallel([partial(cluster.store.job, job) for job in jobs], at_once=10)


@verifies(
    "CO-ASSIGN-01",
    part=2,
    isolation="quiet",
    nodes=3,
    waits="first_leader + claim_latency + ownership_latency + batch_latency",
    needs_hooks=[JOB, JOBS_OF, QUERY_LOGS],
)
async def test_each_job_stands_with_one_owner_that_stays(cluster: Cluster) -> None:
    await cluster.beats.first_of_all(cluster.nodes)
    twice, once = await _offered_twice(cluster), await cluster.jobs.inject(_ONCE)
    jobs, offered = [*twice, *once], cluster.T.now()

    async def all_owned() -> list[Record] | None:
        records = await _records(cluster, jobs)
        return records if all(each.owner for each in records) else None

    before, _ = await cluster.comes(all_owned, "ownership_latency", since=offered, what="an owner of each job")
    await _with_logs(cluster, twice)
    await _on_one_list(cluster, jobs)
    owners = {each.job_id: each.owner for each in await _records(cluster, jobs)}
    for record in before:
        expect(owners[record.job_id], record.owner, why=f"the owner of {record.job_id}, which nobody handed off")
    for job in twice:
        await logged_once(cluster, job)


async def _on_one_list(cluster: Cluster, jobs: Sequence[Job]) -> None:
    """Judges that each of these jobs, and no other, is on the list of one node."""
    lists = {node: await cluster.store.jobs_of(await cluster.id_of(node)) for node in cluster.nodes}
    for job in jobs:
        owning = [node for node, ids in lists.items() if job.id in ids]
        demand(len(owning) == 1, "each job on the list of one node", f"{job.id}: {' and '.join(owning) or 'none'}")
    expect(sum(len(ids) for ids in lists.values()), len(jobs), why="jobs on all lists")


# --- CO-ASSIGN-02


async def _recorded(cluster: Cluster, job: Job) -> str:
    """Waits until the store knows the owner of a job and has the job on his list; returns his id."""
    offered = cluster.T.now()
    beating = {each.node_id for each in await cluster.beats.all()}
    what = f"a node that beats as owner of {job.id}"
    record, _ = await cluster.store.becomes(
        job, lambda seen: seen.owner in beating, "claim_latency", since=offered, what=what
    )

    async def listed() -> bool:
        return job.id in await cluster.store.jobs_of(record.owner)

    await cluster.comes(listed, "claim_latency", since=offered, what=f"{job.id} among the jobs of {record.owner}")
    return record.owner


@verifies("CO-ASSIGN-02", isolation="quiet", waits="first_leader + claim_latency", needs_hooks=[JOB, JOBS_OF])
async def test_the_winner_is_recorded(cluster: Cluster) -> None:
    await cluster.beats.first_of_all(cluster.nodes)
    await _recorded(cluster, await cluster.jobs.inject_one())


@verifies(
    "CO-ASSIGN-02",
    part=2,
    isolation="disruptive",
    nodes=3,
    waits="first_leader + claim_latency",
    needs_hooks=[JOB, JOBS_OF],
)
async def test_the_record_survives_the_owner(cluster: Cluster) -> None:
    await cluster.beats.first_of_all(cluster.nodes)
    job = await cluster.jobs.inject_one()
    owner = await _recorded(cluster, job)
    node = await cluster.node_of(owner)
    if not node:
        raise NotObservable("[dialect] node_ids")
    await cluster.kill(node)
    expect((await cluster.store.job(job)).owner, owner, why="the owner that is recorded, right after its death")
    listed = job.id in await cluster.store.jobs_of(owner)
    demand(listed, f"{job.id} among the jobs of {owner}", "not there", "right after its death")


_BURST, _ROUNDS = 50, 20


@verifies(
    "CO-ASSIGN-02",
    part=3,
    isolation="disruptive",
    nodes=3,
    waits="first_leader + 20*start_up",
    needs=["control.restart"],
    needs_hooks=[JOB],
)
async def test_what_is_acknowledged_has_an_owner_when_a_node_dies(cluster: Cluster) -> None:
    await cluster.beats.first_of_all(cluster.nodes)
    for number in range(_ROUNDS):
        node = cluster.nodes[number % len(cluster.nodes)]
        share = cluster.context.random.randrange(1, _BURST)
        before = await _acknowledged(cluster)
        jobs = await cluster.jobs.inject(_BURST)
        await _given_so_many(cluster, len(before) + share)
        await cluster.kill(node)
        taken = await _acknowledged(cluster)
        for record in await _records(cluster, [job for job in jobs if job.id in taken]):
            demand(record.owner, "an owner of each job whose offer is acknowledged", record.describe(), "at the kill")
        await cluster.restart(node)


async def _given_so_many(cluster: Cluster, count: int) -> None:
    """Waits until so many offers were given to nodes."""

    async def look() -> bool:
        group = await cluster.groups.the_one(ASSIGNED)
        return group.length - group.undelivered >= count

    with cluster.context.arranging("CO-ASSIGN-01"):
        give_up = cluster.never("ownership_latency")
        await cluster.T.until(look, give_up=give_up, what="offers to be given to nodes")


async def _acknowledged(cluster: Cluster) -> set[str]:
    """Returns the jobs whose offers the nodes had been given and have acknowledged."""
    group = await cluster.groups.the_one(ASSIGNED)
    given = [each for each in await cluster.bus.entries(ASSIGNED) if _order(each.id) <= _order(group.last_delivered)]
    # Asked after that: what is not pending now, and was given before, is acknowledged.
    found: Any = await cluster.bus.redis.xpending_range(group.queue, group.name, "-", "+", group.length + 1)
    pending = {str(each["message_id"]) for each in found}
    return {each.message.job_id for each in given if each.id not in pending}


def _order(entry_id: str) -> tuple[int, ...]:
    return tuple(int(piece) for piece in entry_id.split("-"))


# Commands that may store who owns a job.
_RECORDS = frozenset({"HSET", "HSETNX", "HMSET", "SET", "SETNX", "SADD", "ZADD", *SCRIPTS})


@verifies("CO-ASSIGN-02", part=4, isolation="quiet", nodes=3, waits="first_leader + 2*claim_latency")
async def test_the_record_is_written_before_the_offer_is_acknowledged(cluster: Cluster, deeds: Deeds) -> None:
    await cluster.beats.first_of_all(cluster.nodes)
    jobs = await cluster.jobs.inject(_TWICE)
    await cluster.worker.runs(*jobs)
    await cluster.groups.done(jobs, "batch_latency", since=cluster.T.now(), owner="CO-CHAN-04")
    await deeds.tap.nothing_bypassed()
    offers = {each.message.job_id: each.id for each in await cluster.bus.entries(ASSIGNED)}
    for job in jobs:
        acknowledged = _first_with(deeds.acknowledges(cluster.names.channel(ASSIGNED)), offers[job.id])
        if acknowledged is None:
            raise Inconclusive(f"the tap does not show who acknowledged the offer of {job.id}")
        mine = deeds.tap.commands(*_RECORDS, node=acknowledged.node)
        record = _first_with(mine, job.id)
        if record is None:
            raise NotObservable("a record of the owner in Redis")
        order = f"{acknowledged.node} sent {acknowledged.name} of the offer before {record.name} for {job.id}"
        demand(record.at <= acknowledged.at, "the owner stored first, or both in one step", order)


def _first_with(commands: Sequence[Command], text: str) -> Command | None:
    """Returns the first command that has this text among its words."""
    return next((each for each in commands if any(text in str(word) for word in each.words[1:])), None)


# --- CO-ASSIGN-03


_SHARED_OUT = 150


async def _shares(cluster: Cluster, since: Moment) -> None:
    """Judges that each node has its part of the jobs that were offered until then."""
    what = f"heartbeats of {len(cluster.nodes)} nodes that count {_SHARED_OUT} jobs in all"
    counts = await cluster.beats.add_up(cluster.nodes, _SHARED_OUT, "shares_shown", since=since, what=what)
    told = ", ".join(f"{node} {count}" for node, count in sorted(counts.items()))
    demand(min(counts.values()), "near-equal shares, no node without jobs", told, "offers are dealt out in turn")
    least, ratio = cluster.T.count("min_assign_share"), cluster.T.count("max_share_ratio")
    if min(counts.values()) < least:
        cluster.context.warn(f"min_assign_share: expected {least} jobs or more on each node, seen {told}")
    if max(counts.values()) >= ratio * min(counts.values()):
        cluster.context.warn(f"max_share_ratio: expected less than {ratio} between two shares, seen {told}")


@verifies("CO-ASSIGN-03", isolation="quiet", nodes=3, waits="first_leader + 2*shares_shown")
async def test_offers_one_by_one_are_dealt_out_evenly(cluster: Cluster, T: SpecTime) -> None:
    await cluster.beats.first_of_all(cluster.nodes)
    _, last = await cluster.jobs.inject_at(_SHARED_OUT, T.count("assign_rate"))
    await _shares(cluster, last)


@verifies("CO-ASSIGN-03", isolation="quiet", nodes=3, waits="first_leader + shares_shown")
async def test_a_burst_of_offers_is_dealt_out_evenly(cluster: Cluster) -> None:
    await cluster.beats.first_of_all(cluster.nodes)
    await cluster.jobs.inject(_SHARED_OUT)
    await _shares(cluster, cluster.T.now())


# --- CO-ASSIGN-04


async def _stuck_offer(cluster: Cluster) -> tuple[Job, Moment]:
    """Leaves an offer with a consumer that is dead, and starts the nodes.

    Returns the job and the first heartbeat of the leader.
    """
    await cluster.leader()
    await cluster.beats.first_of_all(cluster.nodes)
    group, old = await cluster.groups.the_one(ASSIGNED), await cluster.lock.value()
    await cluster.kill_all()
    job = await cluster.jobs.inject_one()
    await cluster.groups.deliver(group, silent_id())
    started = await cluster.restart_all()
    sample, taken = await cluster.lock.taken("leader_takeover", since=started, other_than=old, owner="CO-LOCK-03")
    leader = await cluster.leader_by(sample.value) or await cluster.leader()
    return job, (await cluster.beats.next(leader, since=taken)).at


_STUCK = "first_leader + leader_takeover + heartbeat_interval + crash_handoff + tolerance"


@verifies("CO-ASSIGN-04", isolation="disruptive", nodes=2, waits=_STUCK)
async def test_an_offer_that_a_dead_node_was_given_is_taken_by_another(cluster: Cluster, T: SpecTime) -> None:
    job, since = await _stuck_offer(cluster)
    live = [await cluster.id_of(node) for node in cluster.nodes]
    await cluster.worker.runs(job)

    async def read() -> bool:
        return await cluster.groups.reader(job) in live

    give_up = 2 * (T.crash_handoff + T.tolerance)
    _, seen = await T.until(read, give_up=give_up, since=since, what=f"a reader of {job.id}, whose offer was stuck")
    T.at_most("crash_handoff", since=since, seen=seen, tolerance="tolerance", what="a reader of the job")


@verifies("CO-ASSIGN-04", part=2, isolation="disruptive", nodes=2, waits=_STUCK, needs_hooks=[JOB])
async def test_whoever_takes_a_stuck_offer_is_recorded(cluster: Cluster, T: SpecTime) -> None:
    job, since = await _stuck_offer(cluster)
    live = [await cluster.id_of(node) for node in cluster.nodes]

    async def owned() -> Record | None:
        record = await cluster.store.job(job)
        return record if record.owner in live else None

    give_up = 2 * (T.crash_handoff + T.tolerance)
    record, seen = await T.until(owned, give_up=give_up, since=since, what=f"an owner of {job.id}")
    T.at_most("crash_handoff", since=since, seen=seen, tolerance="tolerance", what="an owner of the job")
    published = await cluster.worker.runs(job)
    await cluster.groups.done([job], "event_latency", since=published, owner="CO-CHAN-04")
    expect(await cluster.groups.reader(job), record.owner, why="who reads the job")
