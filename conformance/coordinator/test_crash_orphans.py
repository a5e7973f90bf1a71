"""Which jobs of a dead node are published, by whom and how often (seed 4, Scenario B, steps 3 and 4)."""

from collections.abc import Mapping, Sequence

from holdfast.check.finding import Inconclusive, demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.coordinator.bus import Entry
from holdfast.conformance.coordinator.client import Cluster
from holdfast.conformance.coordinator.crashes import (
    Crash,
    crash_entries,
    firsts,
    heard,
    kill,
    no_crash_handoff,
    read_anew,
    same_jobs,
    unchanged,
)
from holdfast.conformance.coordinator.deeds import Deeds
from holdfast.conformance.coordinator.ghost import Ghost, playing
from holdfast.conformance.coordinator.messages import Job
from holdfast.conformance.coordinator.store import SEED_JOB
from holdfast.conformance.coordinator.wire import COMPLETED, HANDOFF, NODE_CRASH, RUNNING, says

# Jobs of the whole cluster, how many of the dead node's are finished, and jobs that one node owns at least.
_JOBS, _FINISHED, _FEW, _MANY = 30, 2, 3, 20
# Consumers of a ghost that competes, and rounds in which it may come away with nothing.
_CONSUMERS, _ROUNDS = 3, 3
_CROWD = "first_leader + load_shown + heartbeat_interval + claim_latency"


@verifies("CO-CRASH-03", isolation="disruptive", nodes=3, waits="first_leader + 2*batch_latency + crash_handoff")
async def test_exactly_the_open_jobs_of_the_dead_node_are_published(cluster: Cluster) -> None:
    (node, *_) = await cluster.followers()
    jobs = await cluster.jobs.running(_JOBS)
    readers = await cluster.groups.readers(jobs)
    dead = await cluster.id_of(node)
    its = [job for job in jobs if readers[job.id] == dead]
    published = await cluster.worker.completes(*its[:_FINISHED])
    await cluster.groups.done(its[:_FINISHED], "event_latency", since=published, owner="CO-EVENT-01")
    crash = await kill(cluster, node)
    await crash.over()
    await heard(cluster, cluster.others(node), since=crash.last.at)
    open_ = {job.id for job in its[_FINISHED:]}
    offers = await cluster.found(HANDOFF, lambda entry: entry.message.job_id in open_, since=crash.last.at)
    for each in firsts(offers).values():
        expect(each.message, says(reason=NODE_CRASH), why=f"the handoff of an open job of {node}, which was killed")
    found = firsts(await crash_entries(cluster, since=crash.last.at))
    same_jobs(found, its[_FINISHED:], "NodeCrash entries", f"the open jobs of {node}")
    others = [job for job in jobs if job not in its]
    after = await read_anew(cluster, others, "batch_latency")
    unchanged({job.id: readers[job.id] for job in others}, after, "jobs of nodes that live")


@verifies(
    "CO-CRASH-03", part=2, isolation="disruptive", nodes=1, waits="first_leader + crash_handoff", needs_hooks=[SEED_JOB]
)
async def test_finished_jobs_of_a_dead_node_are_left_alone(cluster: Cluster) -> None:
    await cluster.leader()
    ghost = cluster.ghost()
    running = [await cluster.store.seed(ghost.id, RUNNING) for _ in range(_FEW)]
    for _ in range(_FINISHED):
        await cluster.store.seed(ghost.id, COMPLETED)
    last = await ghost.beat()
    T = cluster.T
    await T.sleep_until(last, T.crash_handoff + T.tolerance, "handoffs of the jobs of a ghost that fell silent")
    found = firsts(await crash_entries(cluster, since=last))
    same_jobs(found, running, "NodeCrash entries", "those that still run; the others had ended")


# --- CO-CRASH-04


@verifies(
    "CO-CRASH-04",
    isolation="disruptive",
    nodes=3,
    waits=f"{_CROWD} + renew_interval + tolerance + leaderless_watch + free_lock_claim + orphan_check_interval",
)
async def test_orphans_wait_until_somebody_leads(cluster: Cluster, T: SpecTime) -> None:
    await cluster.leader()
    async with cluster.lock.held() as hold:
        await cluster.lock.nobody_leads()
        node = cluster.nodes[0]
        await cluster.jobs.at_least(node, _FEW)
        crash = await kill(cluster, node)
        await T.sleep_until(crash.last.at, T.leaderless_watch, "handoffs without a leader")
        await no_crash_handoff(cluster, since=crash.last.at, why="nobody leads")
        released = await hold.release()
    _, taken = await cluster.lock.taken("free_lock_claim", since=released, other_than=hold.value)
    found = await crash.offers(latest=taken.hi - crash.last.at.hi + T.orphan_check_interval)
    for each in found.values():
        what = f"the NodeCrash entry of {each.message.job_id}"
        T.at_most("orphan_check_interval", since=taken, seen=each.at, tolerance="tolerance", what=what)
    await crash.counted(found)


@verifies("CO-CRASH-04", part=2, isolation="disruptive", nodes=3, waits=f"{_CROWD} + crash_handoff")
async def test_only_the_leader_publishes_orphans(cluster: Cluster, deeds: Deeds) -> None:
    leader = await cluster.leader()
    value = await cluster.lock.value()
    (node, *_) = await cluster.followers()
    await cluster.jobs.at_least(node, _FEW)
    crash = await kill(cluster, node)
    await crash.over()
    entries = await crash_entries(cluster, since=crash.last.at)
    demand(entries, f"NodeCrash entries for the jobs of {node}", "none", "it has been dead for long")
    await deeds.tap.nothing_bypassed()
    if await cluster.lock.value() != value:
        raise Inconclusive("another node has come to lead meanwhile")
    deeds.all_from(entries, [deeds.claimant(value) or leader], "its value is in the lock")


# --- CO-CRASH-05


@verifies(
    "CO-CRASH-05",
    isolation="disruptive",
    nodes=3,
    waits=f"3*({_CROWD} + crash_handoff + ghost_stay) + orphan_check_interval + wide_tolerance + claim_latency",
)
async def test_an_orphan_is_published_once_per_check_until_it_is_taken(cluster: Cluster, T: SpecTime) -> None:
    (node, *_) = await cluster.followers()
    async with playing(cluster.ghost()) as ghost:
        crash, jobs, first = await _contended(cluster, ghost, node)
        swallowed = [job for job in jobs if job.id in {each.job_id for each in ghost.swallowed}]
        again = await _published_again(cluster, crash, swallowed, first)
        living = [await cluster.id_of(other) for other in cluster.others(node)]
        await cluster.jobs.have_reader(swallowed, "claim_latency", since=again, among=living)
        await T.sleep_until(again, T.orphan_check_interval + T.wide_tolerance, "handoffs of jobs that have an owner")
    await heard(cluster, cluster.others(node), since=crash.last.at)
    twice = {job.id for job in swallowed}
    for job_id, copies in (await _by_check(cluster, crash)).items():
        legal = 2 if job_id in twice else 1
        seen = f"{len(copies)}, {_after(crash, copies)} after the last heartbeat"
        demand(len(copies) == legal, f"{legal} NodeCrash entries of {job_id}", seen, "one for each check, until taken")


async def _contended(cluster: Cluster, ghost: Ghost, node: str) -> tuple[Crash, list[Job], dict[str, Entry]]:
    """Kills a node while the ghost competes, which leaves again; returns the crash, all jobs, and the first entries.

    A round in which the ghost got nothing is repeated.
    """
    for number in range(_ROUNDS):
        if number:
            await cluster.restart(node)
        crowd = await cluster.jobs.at_least(node, _MANY)
        await ghost.compete(_CONSUMERS)
        crash = await kill(cluster, node)
        first = await crash.offers()
        opened = min((each.at for each in first.values()), key=lambda at: at.hi)
        await cluster.T.sleep_until(opened, cluster.T.ghost_stay, "what the ghost gets")
        await ghost.leave()
        if ghost.swallowed:
            return crash, crowd.jobs, first
    raise Inconclusive(f"a peer played by the suite was given no handoff in {_ROUNDS} rounds")


async def _published_again(cluster: Cluster, crash: Crash, jobs: Sequence[Job], first: Mapping[str, Entry]) -> Moment:
    """Waits for the second entries of these jobs and judges that they come one check later; returns the last one's."""
    T = cluster.T

    async def look() -> list[Entry] | None:
        found = await _by_check(cluster, crash)
        return [found[job.id][1] for job in jobs] if all(len(found[job.id]) > 1 for job in jobs) else None

    since = max((first[job.id].at for job in jobs), key=lambda at: at.hi)
    give_up = T.orphan_check_interval + 3 * T.wide_tolerance
    what = f"second NodeCrash entries of {len(jobs)} jobs that nobody has taken"
    entries, _ = await T.until(look, give_up=give_up, since=since, what=what)
    for each in entries:
        before, what = first[each.message.job_id].at, f"the second NodeCrash entry of {each.message.job_id}"
        T.at_least("orphan_check_interval", since=before, seen=each.at, tolerance="wide_tolerance", what=what)
        T.at_most("orphan_check_interval", since=before, seen=each.at, tolerance="wide_tolerance", what=what)
    return max((each.at for each in entries), key=lambda at: at.hi)


async def _by_check(cluster: Cluster, crash: Crash) -> dict[str, list[Entry]]:
    """Returns the NodeCrash entries of each job, without the retries that the target declares to make in between."""
    found = dict[str, list[Entry]]()
    for each in await crash_entries(cluster, since=crash.last.at):
        found.setdefault(each.message.job_id, []).append(each)
    if not cluster.dialect.get("crash_handoff_retries"):
        return found
    return {job_id: _without_retries(cluster.T, copies) for job_id, copies in found.items()}


def _without_retries(T: SpecTime, copies: Sequence[Entry]) -> list[Entry]:
    """Returns one entry of each check; judges how many copies come in between, and how far apart they are."""
    kept, retries, before = [copies[0]], 0, copies[0]
    for each in copies[1:]:
        if each.at.lo - kept[-1].at.hi >= T.orphan_check_interval - T.wide_tolerance:
            kept.append(each)
            retries = 0
        else:
            what = f"a retry of the NodeCrash entry of {each.message.job_id}"
            T.at_least("handoff_ack_timeout", since=before.at, seen=each.at, tolerance="tolerance", what=what)
            retries += 1
            legal = T.count("handoff_max_retries")
            demand(retries <= legal, f"at most {legal} retries of {each.message.job_id}", f"{retries}", "in one check")
        before = each
    return kept


def _after(crash: Crash, entries: Sequence[Entry]) -> str:
    return ", ".join(f"{each.at.lo - crash.last.at.hi:.2f} s" for each in entries)
