"""Times of a drain against the document's: something came so long after, publications follow each other so evenly."""

import itertools
from collections.abc import Sequence

from holdfast.check.finding import Inconclusive
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.conformance.coordinator.bus import Entry
from holdfast.conformance.coordinator.client import Cluster
from holdfast.conformance.coordinator.leaving import Leaving
from holdfast.conformance.coordinator.messages import Job


def around(
    T: SpecTime,
    name: str,
    *,
    since: Moment,
    seen: Moment,
    what: str,
    tolerance: str = "tolerance",
    late_by: str = "",
) -> None:
    """Judges that something came a time of the document after a moment, give or take the tolerance.

    `late_by` names a wider one for what came late.
    """
    T.at_least(name, since=since, seen=seen, tolerance=tolerance, what=what)
    T.at_most(name, since=since, seen=seen, tolerance=late_by or tolerance, what=what)


def evenly(T: SpecTime, name: str, entries: Sequence[Entry], what: str) -> None:
    """Judges that each of these entries came that time after the one before, give or take the tolerance."""
    for before, after in itertools.pairwise(entries):
        around(T, name, since=before.at, seen=after.at, what=what)


def answered_within(T: SpecTime, offered: Entry, acked: Moment, waits: int) -> None:
    """Raises Inconclusive if our own ACK came so late that the node may have published again before."""
    after = acked.hi - offered.at.lo
    if after >= waits * T.handoff_ack_timeout:
        raise Inconclusive(f"our ACK came {after:.2f} s after the first handoff entry")


async def leaves_registry(cluster: Cluster, leaving: Leaving, job: Job, since: Moment) -> None:
    """Waits until a job is no longer among those of the draining node, as the store tells; judges the time."""
    node_id = await cluster.id_of(leaving.node)

    async def look() -> bool:
        return job.id not in await cluster.store.jobs_of(node_id)

    await cluster.comes(look, "event_latency", since=since, what=f"{job.id} gone from the jobs of {leaving.node}")
