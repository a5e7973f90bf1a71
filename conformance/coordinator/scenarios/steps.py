"""Steps that several scenarios share: a node that is struck, a node that is told to stop, and what must be left."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from holdfast.check.faults import Faults
from holdfast.check.finding import demand
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.conformance.coordinator.client import Cluster
from holdfast.conformance.coordinator.crashes import Crash
from holdfast.conformance.coordinator.leaving import Leaving
from holdfast.conformance.coordinator.lock import Sample
from holdfast.conformance.coordinator.messages import Job
from holdfast.conformance.coordinator.recovered import all_logs_stored, each_has_one_group
from holdfast.conformance.coordinator.store import JOB, QUERY_LOGS
from holdfast.conformance.coordinator.worker import numbers
from holdfast.target.fault import Receipt, Window


def in_force(window: Window) -> Moment:
    """When a fault began."""
    return Moment(window.asked, window.in_force)


def over(window: Window) -> Moment:
    """When a fault ended."""
    return Moment(window.healing, window.healed)


@asynccontextmanager
async def struck(cluster: Cluster, faults: Faults, kind: str, node: str, subject: str = "") -> AsyncIterator[Crash]:
    """Keeps a node, or its link, under a fault that silences it during the block; it comes back after it."""
    await cluster.beats.last(node)
    async with faults.during(kind, subject or node) as window:
        last = await cluster.beats.last(node)
        yield Crash(cluster, node, in_force(window), last, last.job_count or 0)


@asynccontextmanager
async def told_to_stop(cluster: Cluster, faults: Faults, node: str) -> AsyncIterator[Leaving]:
    """Sends SIGTERM to a node; the block judges its drain. The receipt is the process that it was sent to."""
    process = cluster.deployment.nodes[node].pid
    async with faults.stimulus("term", node) as window:
        window.receipts.append(Receipt(f"{node}: SIGTERM was sent to process {process}", process is not None))
        yield cluster.leave(node)


async def nothing_lost(cluster: Cluster, jobs: Sequence[Job], bound: str, *, since: Moment) -> None:
    """Judges that in time everything of these jobs is processed, by the one group of each channel, and stored.

    That something is stored twice is worth a warning here: after a crash the document promises no more. Rows that
    promise more have `logged.all_logged`.
    """
    await cluster.groups.done(jobs, bound, since=since)
    await each_has_one_group(cluster, jobs)
    if await cluster.store.has(QUERY_LOGS):
        await all_logs_stored(cluster, jobs)
        for job in jobs:
            if len(stored := numbers(await cluster.store.logs(job))) > len(set(stored)):
                cluster.context.warn(f"of the logs of {job.id} {len(stored) - len(set(stored))} are stored twice")
    if await cluster.store.has(JOB):
        for job in jobs:
            if last := cluster.worker.of(job).last_status:
                await cluster.store.is_status(job, last, bound, since=since)


async def read_by(cluster: Cluster, jobs: Sequence[Job], nodes: Sequence[str], why: str) -> None:
    """Judges that these jobs have a reader each, one of these nodes."""
    ids = {await cluster.id_of(node) for node in nodes}
    found = await cluster.groups.readers(jobs)
    wrong = [f"{job_id} by {reader or 'nobody'}" for job_id, reader in found.items() if reader not in ids]
    demand(not wrong, f"jobs read by {' or '.join(sorted(nodes))}", ", ".join(wrong[:3]), why)


def not_early(T: SpecTime, before: Sample, taken: Moment) -> None:
    """Judges that the lock of a leader that can do nothing any more is left to it until its lease has run out."""
    early = before.expiry.lo - taken.hi
    told = f"another value {early:.2f} s earlier"
    demand(
        early <= T.tolerance,
        f"{before.value} until its lease runs out",
        told,
        "its node could not give it up",
        unsafe=True,
    )
