"""Compares the logs that the store has of a job with those that the suite's worker has published.

All of them, in the order in which they were published, each once. A target that declares `[dialect] at_least_once` may
store one more than once: that is worth a warning, and the first time counts for the order.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from holdfast.check.finding import demand
from holdfast.check.timeline import Moment
from holdfast.conformance.coordinator.client import Cluster
from holdfast.conformance.coordinator.messages import Job
from holdfast.conformance.coordinator.worker import first_occurrences, numbers

_MOST_SHOWN = 10


async def all_logged(cluster: Cluster, jobs: Iterable[Job], bound: str, *, since: Moment) -> None:
    """Waits until the store has all logs of these jobs, and judges the time; then judges order and repeats."""
    for job in jobs:
        published = cluster.worker.of(job).numbers

        async def stored(job: Job = job, published: Sequence[int] = published) -> bool:
            return set(published) <= set(numbers(await cluster.store.logs(job)))

        await cluster.comes(stored, bound, since=since, what=f"all {len(published)} logs of {job.id} in the store")
        await logged_once(cluster, job)


async def logged_once(cluster: Cluster, job: Job) -> None:
    """Judges that the store has each log of a job once, in order."""
    stored, published = numbers(await cluster.store.logs(job)), cluster.worker.of(job).numbers
    first, logs = first_occurrences(stored), f"the logs of {job.id}"
    missing = sorted(set(published) - set(first))
    demand(not missing, f"all {len(published)} of {logs}", f"{len(missing)} are missing: {_told(missing)}")
    swapped = [second for one, second in pairwise(first) if second < one]
    demand(not swapped, f"{logs} in order", f"stored after a later one: {_told(swapped)}")
    repeated = sorted({number for number in first if stored.count(number) > 1})
    if repeated and cluster.dialect.get("at_least_once"):
        cluster.context.warn(f"of {logs} {len(repeated)} are stored more than once: {_told(repeated)}")
        return
    demand(not repeated, f"{logs} stored once each", f"stored more than once: {_told(repeated)}")


def _told(found: Sequence[int]) -> str:
    more = "" if len(found) <= _MOST_SHOWN else " …"
    return ", ".join(str(number) for number in found[:_MOST_SHOWN]) + more
