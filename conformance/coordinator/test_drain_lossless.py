"""What a drain must not lose (seed 4, Scenario A): offers in flight, events, and the leadership of the cluster."""

from collections.abc import Awaitable, Callable, Sequence

import pytest

from holdfast.check.finding import ArrangementFailed, demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.coordinator.client import Cluster
from holdfast.conformance.coordinator.ghost import everything, playing
from holdfast.conformance.coordinator.groups import JOB_QUEUES
from holdfast.conformance.coordinator.leaving import Leaving
from holdfast.conformance.coordinator.logged import all_logged
from holdfast.conformance.coordinator.messages import Job
from holdfast.conformance.coordinator.store import ENQUEUE, JOB, QUERY_LOGS
from holdfast.conformance.coordinator.wire import SHUTDOWN

# --- CO-DRAIN-08

# Says the id of the node that has a job.
Owners = Callable[[Job], Awaitable[str]]
_OFFERS, _ROUNDS = 200, 3


async def _in_a_flood(cluster: Cluster) -> tuple[list[Job], Moment, list[str]]:
    """Drains a node in the middle of a flood of offers.

    Returns the jobs, when the node had ended, and the ids of the others.
    """
    T, (node, *others) = cluster.T, cluster.nodes
    await cluster.beats.first_of_all(cluster.nodes)
    rate = T.count("flood_rate")
    offering = cluster.beside(cluster.jobs.inject_at(_OFFERS, rate))
    await T.sleep(_OFFERS / rate / 2, "the middle of the flood")
    leaving = cluster.leave(node)
    jobs, last = await offering
    ended = await leaving.ends()
    since = max(ended, last, key=lambda each: each.hi)
    return jobs, since, [await cluster.id_of(each) for each in others]


async def _all_have(cluster: Cluster, owners: Owners, jobs: Sequence[Job], since: Moment, live: Sequence[str]) -> None:
    """Judges that each job has an owner that is alive, in time."""
    T, waiting = cluster.T, list(jobs)

    async def look() -> bool:
        while waiting and await owners(waiting[0]) in live:
            waiting.pop(0)
        return not waiting

    what = f"an owner that is alive of each of {len(jobs)} jobs"
    give_up = 2 * (T.crash_handoff + T.tolerance)
    _, seen = await T.until(look, give_up=give_up, since=since, what=what)
    T.at_most("crash_handoff", since=since, seen=seen, tolerance="tolerance", what=what)


_FLOODED = "first_leader + few_out + clean_drain + crash_handoff + tolerance"


@pytest.mark.parametrize("number", range(1, _ROUNDS + 1))
@verifies("CO-DRAIN-08", isolation="disruptive", nodes=3, waits=_FLOODED)
async def test_an_offer_in_flight_has_a_reader_afterwards(cluster: Cluster, number: int) -> None:
    cluster.context.transcript.note(f"round {number}")
    jobs, since, live = await _in_a_flood(cluster)
    for job in jobs:  # a new reader may show only once it was given something
        await cluster.worker.logs(job)
    await _all_have(cluster, cluster.groups.reader, jobs, since, live)


@pytest.mark.parametrize("number", range(1, _ROUNDS + 1))
@verifies("CO-DRAIN-08", part=2, isolation="disruptive", nodes=3, waits=_FLOODED, needs_hooks=[JOB])
async def test_an_offer_in_flight_has_a_recorded_owner_afterwards(cluster: Cluster, number: int) -> None:
    cluster.context.transcript.note(f"round {number}")
    jobs, since, live = await _in_a_flood(cluster)

    async def owner(job: Job) -> str:
        return (await cluster.store.job(job)).owner

    await _all_have(cluster, owner, jobs, since, live)


# --- CO-DRAIN-09

_LED = 5


@verifies("CO-DRAIN-09", isolation="disruptive", nodes=1, waits="first_leader + load_shown + clean_drain")
async def test_a_lone_leader_hands_its_jobs_off(cluster: Cluster) -> None:
    node = cluster.alone
    await cluster.leader()
    jobs = await cluster.jobs.owned(_LED)
    async with playing(cluster.ghost()) as ghost:
        ghost.acks(everything)
        leaving = cluster.leave(node)
        await _offers_all(cluster, leaving, _LED)
        await leaving.exits("prompt_exit", since=await ghost.acked_all(jobs))


async def _offers_all(cluster: Cluster, leaving: Leaving, count: int) -> None:
    """Judges that a leader offers all its jobs as any node does."""
    offered = set[str]()

    async def look() -> bool:
        offered.update(each.message.job_id for each in await leaving.offers(reason=SHUTDOWN))
        return len(offered) >= count or leaving.exited is not None

    what = f"Shutdown handoffs of the {count} jobs of a leader"
    await cluster.T.until(look, give_up=cluster.never("first_offer"), since=leaving.begun, what=what)
    expect(len(offered), count, why="jobs of a leader with a Shutdown handoff, of those that it owned")


@verifies(
    "CO-DRAIN-09",
    part=2,
    isolation="disruptive",
    nodes=3,
    waits="first_leader + load_shown + clean_drain + leader_takeover + few_out",
    needs_hooks=[ENQUEUE],
)
async def test_a_leader_among_others_drains_and_another_leads(cluster: Cluster, T: SpecTime) -> None:
    node = await cluster.leader()
    await cluster.beats.first_of_all(cluster.nodes)
    crowd = await cluster.jobs.at_least(node, _LED)
    old = await cluster.lock.value()
    leaving = cluster.leave(node)
    await _offers_all(cluster, leaving, crowd.count)
    ended = await leaving.exits("clean_drain", since=leaving.begun)
    if not (acks := await leaving.acks()):
        raise ArrangementFailed("CO-TAKE-03", "no ACK came")
    T.at_most("prompt_exit", since=acks[-1].at, seen=ended, what="the exit of a leader after its last ACK")
    (job,) = await cluster.jobs.enqueue()
    enqueued = T.now()
    _, taken = await cluster.lock.taken("leader_takeover", since=ended, other_than=old)
    later = max(taken, enqueued, key=lambda each: each.hi)
    _, entry = await cluster.jobs.dispatched(job, "few_out", since=enqueued, owner="CO-DISP-01")
    T.at_most("dispatch_scan", since=later, seen=entry.at, tolerance="tolerance", what="a dispatch by the next leader")


# --- CO-DRAIN-10

_FLOWING = 10


async def _drained_in_a_flow(cluster: Cluster) -> tuple[list[Job], Moment]:
    """Drains the owner of many jobs while their worker goes on to log; returns the jobs, and when the flow ended."""
    T, node = cluster.T, cluster.nodes[0]
    await cluster.beats.first_of_all(cluster.nodes)
    crowd = await cluster.jobs.at_least(node, _FLOWING)
    jobs = (await cluster.jobs.of_node(await cluster.id_of(node), crowd.jobs))[:_FLOWING]
    if len(jobs) < _FLOWING:
        raise ArrangementFailed("CO-CHAN-04", f"{node} reads {len(jobs)} jobs of the {crowd.count} that it counts")
    async with cluster.worker.flow(jobs, T.count("event_rate")):
        await T.sleep(T.event_latency, "events before the drain")
        leaving = cluster.leave(node)
        ended = await leaving.ends()
        await T.sleep_until(ended, T.batch_latency, "events after the drain")
    return jobs, T.now()


_FLOW = "first_leader + load_shown + event_latency + clean_drain + 2*batch_latency"


@verifies("CO-DRAIN-10", isolation="disruptive", nodes=3, busy=True, waits=_FLOW)
async def test_all_events_of_a_drain_are_processed(cluster: Cluster) -> None:
    jobs, since = await _drained_in_a_flow(cluster)
    what = "all events from before, during and after the drain read and acknowledged"
    await cluster.groups.done(jobs, "batch_latency", since=since, what=what)
    for job in jobs:
        for kind in JOB_QUEUES:
            groups = [each.name for each in await cluster.groups.of(kind, **job.ids)]
            told = ", ".join(groups) or "none"
            demand(
                len(groups) == 1, f"one group on {cluster.names.channel(kind, **job.ids)}", told, "it was handed over"
            )


@verifies("CO-DRAIN-10", part=2, isolation="disruptive", nodes=3, busy=True, waits=_FLOW, needs_hooks=[QUERY_LOGS])
async def test_all_events_of_a_drain_are_stored_once_and_in_order(cluster: Cluster) -> None:
    jobs, since = await _drained_in_a_flow(cluster)
    await all_logged(cluster, jobs, "batch_latency", since=since)
