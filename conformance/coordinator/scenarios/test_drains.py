"""Nodes that are told to stop: beside a slow taker, cut off, one after the other, all at once (C7, C10, C12, C14)."""

from collections.abc import Sequence

from holdfast.check.faults import Faults
from holdfast.check.finding import demand
from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.conformance.coordinator.client import Cluster
from holdfast.conformance.coordinator.leaving import Leaving
from holdfast.conformance.coordinator.logged import all_logged
from holdfast.conformance.coordinator.messages import Job
from holdfast.conformance.coordinator.scenarios.steps import nothing_lost, over, read_by, told_to_stop
from holdfast.conformance.coordinator.scenarios.watch import watching
from holdfast.conformance.coordinator.store import QUERY_LOGS
from holdfast.conformance.coordinator.wire import SHUTDOWN

# Seconds of the spec's time that each message of a slow taker is late, in two drains.
SLOW, SLOWER = 4, 6
_JOBS, _SOME, _MANY = 3, 10, 100
# Logs a second of each job in the rolling restart.
_RATE = 1


async def _one_taker(leaving: Leaving) -> None:
    """Judges that each job of a drain was acknowledged by one node only, however often it was offered."""
    takers = dict[str, set[str]]()
    for each in await leaving.acks():
        if each.message.new_owner:
            takers.setdefault(each.message.job_id, set()).add(each.message.new_owner)
    two = [f"{job_id} by {' and '.join(sorted(by))}" for job_id, by in takers.items() if len(by) > 1]
    demand(not two, "ACKs of one node for each job", "; ".join(two[:3]), f"{leaving.node} handed them off", unsafe=True)


async def _exits(cluster: Cluster, leaving: Leaving) -> None:
    """Judges that the node exits within the hard limit, whatever keeps it waiting."""
    with cluster.context.about("CO-ACK-10"):
        await leaving.exits_by("handoff_hard_timeout", since=leaving.begun, tolerance="exit_tolerance")


async def _owned_by(cluster: Cluster, node: str, count: int) -> list[Job]:
    crowd = await cluster.jobs.at_least(node, count)
    return await cluster.jobs.of_node(await cluster.id_of(node), crowd.jobs)


@verifies(
    "CO-TAKE-01",
    isolation="disruptive",
    nodes=2,
    needs=("chaos.latency", "control.restart"),
    waits="first_leader + 2*(2*load_shown + handoff_hard_timeout + start_up + batch_latency)",
)
@verifies("CO-ACK-10")
async def test_c07_drain_beside_a_slow_taker(cluster: Cluster, faults: Faults, T: SpecTime) -> None:
    """ACKs are late, so handoffs are repeated: one node takes each job for all that, and nothing is lost."""
    async with watching(cluster):
        one, two = cluster.nodes
        for leaver, taker, seconds in ((one, two, SLOW), (two, one, SLOWER)):
            jobs = await _owned_by(cluster, leaver, _JOBS)
            delay = T.scaled(seconds)
            async with (
                faults.during("delay", f"{taker}-redis", seconds=delay, direction="up") as window,
                told_to_stop(cluster, faults, leaver) as leaving,
            ):
                await leaving.offered(*jobs)
                await _exits(cluster, leaving)
            await _one_taker(leaving)
            repeated = len(await leaving.offers(reason=SHUTDOWN)) - len(jobs)
            cluster.context.transcript.note(f"{repeated} handoffs of {leaver} were repeated")
            last = await cluster.worker.completes(*jobs)
            await nothing_lost(cluster, jobs, "gap_processed", since=last)
            await read_by(cluster, jobs, [taker], f"{leaver} has handed them off")
            await cluster.restart(leaver)
            await cluster.beats.next(leaver, since=over(window))


@verifies(
    "CO-ACK-10",
    part=2,
    isolation="disruptive",
    nodes=3,
    needs=("chaos.partition",),
    waits="first_leader + 2*load_shown + handoff_hard_timeout + orphans_owned + gap_processed",
)
async def test_c10_node_cut_off_and_told_to_stop(cluster: Cluster, faults: Faults) -> None:
    """It exits within the hard limit although it can tell nobody, and others recover its jobs."""
    async with watching(cluster):
        (node, *_) = await cluster.followers()
        jobs, others = await _owned_by(cluster, node, _JOBS), cluster.others(node)
        async with faults.during("cut", f"{node}-redis"), told_to_stop(cluster, faults, node) as leaving:
            await _exits(cluster, leaving)
        among = [await cluster.id_of(each) for each in others]
        await cluster.jobs.have_reader(jobs, "orphans_owned", since=leaving.begun, among=among)
        last = await cluster.worker.completes(*jobs)
        await nothing_lost(cluster, jobs, "gap_processed", since=last)


@verifies(
    "CO-DRAIN-10",
    isolation="disruptive",
    nodes=3,
    needs=("control.restart",),
    waits="first_leader + ownership_latency + 3*(clean_drain + start_up + load_shown) + batch_latency",
)
async def test_c12_rolling_restart(cluster: Cluster, faults: Faults, T: SpecTime) -> None:
    """One node after the other under a hundred jobs: each exits soon, no job waits long, no event is lost."""
    async with watching(cluster):
        jobs = await cluster.jobs.running(_MANY)
        async with cluster.worker.flow(jobs, _RATE):
            for node in list(cluster.nodes):
                async with told_to_stop(cluster, faults, node) as leaving:
                    await leaving.exits("clean_drain", since=leaving.begun)
                await _taken_soon(cluster, leaving)
                started = await cluster.restart(node)
                await cluster.beats.next(node, since=started)
        last = T.now()
        await cluster.groups.done(jobs, "batch_latency", since=last)
        if await cluster.store.has(QUERY_LOGS):
            await all_logged(cluster, jobs, "batch_latency", since=last)


async def _taken_soon(cluster: Cluster, leaving: Leaving) -> None:
    """Judges how long the jobs of a drain were nobody's: from the handoff to the ACK, by one taker."""
    acks = {each.message.job_id: each for each in reversed(await leaving.acks())}
    for each in await leaving.offers(reason=SHUTDOWN):
        if ack := acks.pop(each.message.job_id, None):
            what = f"a taker of {each.message.job_id}"
            cluster.T.at_most("batch_latency", since=each.at, seen=ack.at, what=what)
    await _one_taker(leaving)


@verifies(
    "CO-ACK-12",
    isolation="disruptive",
    nodes=3,
    needs=("control.restart",),
    waits="first_leader + ownership_latency + handoff_hard_timeout + cold_recovery",
)
@verifies("CO-ACK-10")
async def test_c14_all_told_to_stop_at_once(cluster: Cluster, faults: Faults) -> None:
    """Each exits within the hard limit, and what they leave behind is found by a node that is started later."""
    async with watching(cluster):
        jobs = await cluster.jobs.running(_SOME)
        await _all_stop(cluster, faults, list(cluster.nodes))
        for job in jobs:
            await cluster.worker.logs(job)
        await cluster.worker.completes(*jobs)
        name, started = await cluster.start_new()
        await nothing_lost(cluster, jobs, "cold_recovery", since=started)
        await read_by(cluster, jobs, [name], "all others have left")


async def _all_stop(cluster: Cluster, faults: Faults, nodes: Sequence[str]) -> None:
    """Tells all of these nodes to stop, one inside the other, and judges the exit of each."""
    if not nodes:
        return
    async with told_to_stop(cluster, faults, nodes[0]) as leaving:
        await _all_stop(cluster, faults, nodes[1:])
        await _exits(cluster, leaving)
