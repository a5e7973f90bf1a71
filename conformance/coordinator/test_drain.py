"""A node that was told to stop (seed 4, Scenario A): it drains, hands off what it owns, and exits when that is done."""

from collections.abc import Sequence

from holdfast.check.finding import demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.coordinator.bus import Entry
from holdfast.conformance.coordinator.client import Cluster
from holdfast.conformance.coordinator.ghost import everything, playing
from holdfast.conformance.coordinator.leaving import Leaving
from holdfast.conformance.coordinator.logged import all_logged
from holdfast.conformance.coordinator.messages import Job
from holdfast.conformance.coordinator.store import JOB, QUERY_LOGS
from holdfast.conformance.coordinator.wire import ASSIGNED, HANDOFF, RUNNING

_ARRANGED = "first_leader + load_shown"


async def _still_there(cluster: Cluster, leaving: Leaving, jobs: Sequence[Job], why: str) -> list[Entry]:
    """Waits for the first handoff entry of each job, and judges that the node stays; returns them."""

    async def look() -> list[Entry] | None:
        found = [await leaving.offers(job) for job in jobs]
        return [entries[0] for entries in found if entries] if leaving.exited or all(found) else None

    with cluster.context.arranging("CO-DRAIN-04"):
        give_up = cluster.never("first_offer")
        what = f"a handoff entry of each of {len(jobs)} jobs"
        entries, _ = await cluster.T.until(look, give_up=give_up, since=leaving.begun, what=what)
    leaving.alive(why)
    return entries


@verifies(
    "CO-DRAIN-01",
    isolation="disruptive",
    nodes=1,
    waits=f"{_ARRANGED} + first_offer + late_in_first_wait + prompt_exit",
)
async def test_a_node_stays_until_the_last_handoff_is_acknowledged(cluster: Cluster, T: SpecTime) -> None:
    node, why = cluster.alone, "one of its handoffs is not acknowledged"
    jobs = await cluster.jobs.owned(3)
    at_once = {job.id for job in jobs[:2]}
    async with playing(cluster.ghost()) as ghost:
        ghost.acks(lambda entry: entry.message.job_id in at_once)
        leaving = cluster.leave(node)
        last = (await _still_there(cluster, leaving, jobs, why))[-1]
        await ghost.acked_all(jobs[:2])
        await leaving.alive_at(last.at, T.alive_look, why)
        await T.sleep_until(last.at, T.late_in_first_wait, "the last ACK")
        leaving.alive(why)
        await leaving.exits("prompt_exit", since=await ghost.answer(last))


# --- CO-DRAIN-02


_LATE = 5


async def _offered_too_late(cluster: Cluster) -> tuple[Leaving, list[Job]]:
    """Lets the only node drain one job, and offers others meanwhile; returns its drain, which is over, and those."""
    T, node = cluster.T, cluster.alone
    (job,) = await cluster.jobs.owned(1)
    async with playing(cluster.ghost()):
        leaving = cluster.leave(node)
        await leaving.offer(job)
        await T.sleep_until(leaving.begun, T.tolerance, "the node to leave the queue")
        leaving.alive("its handoff is not acknowledged")
        late = await cluster.jobs.inject(_LATE)
        await leaving.ends()
    return leaving, late


_TOO_LATE = f"{_ARRANGED} + tolerance + handoff_hard_timeout"


@verifies("CO-DRAIN-02", isolation="disruptive", nodes=1, waits=_TOO_LATE)
async def test_a_draining_node_takes_no_offer(cluster: Cluster) -> None:
    leaving, late = await _offered_too_late(cluster)
    beats = await cluster.beats.of(leaving.node, since=leaving.begun)
    demand(beats, "heartbeats of a draining node", "none", "it beats to its end")
    for beat in beats:
        demand((beat.job_count or 0) <= 1, "a jobCount of at most 1", beat.describe(), "it takes no new assignments")
    ids = {job.id for job in late}
    why = "it was offered after the drain had begun"
    await cluster.no_entry(HANDOFF, lambda each: each.message.job_id in ids, since=leaving.begun, why=why)


@verifies("CO-DRAIN-02", part=2, isolation="disruptive", nodes=1, waits=_TOO_LATE)
async def test_a_draining_node_is_given_no_offer(cluster: Cluster) -> None:
    _, late = await _offered_too_late(cluster)
    group = await cluster.groups.the_one(ASSIGNED)
    expect(group.undelivered, _LATE, why="offers that nobody was given, of those after the drain had begun")
    for job in late:
        expect(await cluster.groups.reader(job), "", why=f"who reads {job.id}, which was offered too late")


# --- CO-DRAIN-03


async def _events_while_it_drains(cluster: Cluster) -> Job:
    """Publishes events of a job twice while its owner drains, and judges that he processes them; returns the job."""
    T, node = cluster.T, cluster.alone
    (job,) = await cluster.jobs.owned(1)
    async with playing(cluster.ghost()):
        leaving = cluster.leave(node)
        first = await leaving.offer(job)
        for wait in (T.in_first_wait, T.in_second_wait):
            await T.sleep_until(first.at, wait, "events of a job that is not handed over")
            await cluster.worker.logs(job, _LATE)
            published = await cluster.worker.runs(job)
            what = "the events of a draining node's job read and acknowledged"
            await cluster.groups.done([job], "event_latency", since=published, what=what)
            leaving.alive("its handoff is not acknowledged")
            readers = " and ".join(sorted(await cluster.groups.ever_read(job)))
            expect(readers, await cluster.id_of(node), why="who has read the job")
    return job


_DRAINING = f"{_ARRANGED} + first_offer + in_second_wait + event_latency"


@verifies("CO-DRAIN-03", isolation="disruptive", nodes=1, waits=_DRAINING)
async def test_a_draining_node_reads_the_events_of_its_jobs(cluster: Cluster) -> None:
    await _events_while_it_drains(cluster)


@verifies("CO-DRAIN-03", part=2, isolation="disruptive", nodes=1, waits=_DRAINING, needs_hooks=[JOB, QUERY_LOGS])
async def test_a_draining_node_stores_the_events_of_its_jobs(cluster: Cluster) -> None:
    job = await _events_while_it_drains(cluster)
    since = cluster.T.now()
    await all_logged(cluster, [job], "event_latency", since=since)
    await cluster.store.is_status(job, RUNNING, "event_latency", since=since)


# --- CO-DRAIN-06


async def _exit(cluster: Cluster, leaving: Leaving, since: Moment) -> None:
    """Judges that a node that waits for nothing exits: soon, and surely without the waits of the document."""
    T, what = cluster.T, "the exit of a node that has nothing left to hand off"
    seen = await leaving.end(2 * T.handoff_hard_timeout, since=since)
    T.at_most("orphan_wait", since=since, seen=seen, what=what)
    T.at_most("prompt_exit", since=since, seen=seen, what=what)


@verifies("CO-DRAIN-06", isolation="disruptive", nodes=1, waits=f"{_ARRANGED} + clean_drain")
async def test_a_node_exits_once_all_its_jobs_are_acknowledged(cluster: Cluster) -> None:
    node = cluster.alone
    jobs = await cluster.jobs.owned(3)
    async with playing(cluster.ghost()) as ghost:
        ghost.acks(everything)
        leaving = cluster.leave(node)
        await leaving.offered(*jobs)
        await _exit(cluster, leaving, await ghost.acked_all(jobs))


@verifies("CO-DRAIN-06", isolation="disruptive", nodes=1, waits="first_leader + prompt_exit")
async def test_an_idle_node_exits(cluster: Cluster) -> None:
    node = cluster.alone
    await cluster.leader()
    await cluster.beats.last(node)
    leaving = cluster.leave(node)
    await _exit(cluster, leaving, leaving.begun)
    await cluster.no_entry(HANDOFF, since=leaving.begun, why="it owned nothing")


_MANY = 10


@verifies("CO-DRAIN-06", part=2, isolation="disruptive", nodes=3, waits=f"{_ARRANGED} + clean_drain")
async def test_a_node_with_many_jobs_is_gone_soon(cluster: Cluster) -> None:
    node = cluster.nodes[0]
    await cluster.beats.first_of_all(cluster.nodes)
    crowd = await cluster.jobs.at_least(node, _MANY)
    leaving = cluster.leave(node)
    seen = await leaving.exits("clean_drain", since=leaving.begun)
    acks = await leaving.acks()
    with cluster.context.arranging("CO-TAKE-03"):
        expect(len({each.message.job_id for each in acks}), crowd.count, why="jobs that were acknowledged")
    cluster.T.at_most("prompt_exit", since=acks[-1].at, seen=seen, what=f"the exit of {node} after its last ACK")


# --- CO-DRAIN-07


_FEW = 5


@verifies("CO-DRAIN-07", isolation="disruptive", nodes=1, waits=f"{_ARRANGED} + first_offer + handoff_ack_timeout")
async def test_all_jobs_are_offered_up_front(cluster: Cluster, T: SpecTime) -> None:
    node = cluster.alone
    jobs = await cluster.jobs.owned(_FEW)
    async with playing(cluster.ghost()):
        leaving = cluster.leave(node)

        async def look() -> list[Entry] | None:
            found = {job.id: await leaving.offers(job) for job in jobs}
            firsts = [entries[0] for entries in found.values() if entries]
            again = next((each[1] for each in found.values() if len(each) > 1), None)
            early = len(firsts) == _FEW and not (again and any(each.at.lo > again.at.hi for each in firsts))
            told = f"{len(firsts)} of {_FEW} were offered by the time of a second entry"
            demand(early or not again, "the first entry of each job before the second of any", told)
            return firsts if early else None

        what = f"a handoff entry of each of {_FEW} jobs"
        firsts, _ = await T.until(look, give_up=cluster.never("first_offer"), since=leaving.begun, what=what)
    for entry in firsts:
        T.at_most("first_offer", since=leaving.begun, seen=entry.at, what="the first handoff entry of a job")
