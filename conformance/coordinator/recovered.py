"""What holds once jobs have outlived their coordinators: nothing of their channels was lost or doubled."""

from collections.abc import Iterable

from holdfast.check.finding import demand, expect
from holdfast.conformance.coordinator.client import Cluster
from holdfast.conformance.coordinator.groups import Group
from holdfast.conformance.coordinator.messages import Job
from holdfast.conformance.coordinator.wire import LOGS, STATUS
from holdfast.conformance.coordinator.worker import numbers


async def each_has_one_group(cluster: Cluster, jobs: Iterable[Job]) -> None:
    """Judges that each channel of the jobs has one group, which was given all that our worker has published."""
    for job in jobs:
        published = cluster.worker.of(job)
        for kind, count in ((STATUS, len(published.statuses)), (LOGS, len(published.numbers))):
            groups = await cluster.groups.of(kind, **job.ids)
            queue = cluster.names.channel(kind, **job.ids)
            if not groups and not count:
                continue
            expect(len(groups), 1, why=f"groups of {queue}")
            given = _given(groups[0])
            told = f"{groups[0].describe()}"
            demand(given >= count, f"all {count} entries given to the group", told, "nothing of a channel is dropped")


def _given(group: Group) -> int:
    """Returns how many entries a group has been given, as far as Redis counts that."""
    return (group.entries_read or 0) if group.counted else group.length - group.undelivered


async def all_logs_stored(cluster: Cluster, jobs: Iterable[Job]) -> None:
    """Judges that the store has every log that our worker has published for these jobs."""
    for job in jobs:
        missing = sorted(set(cluster.worker.of(job).numbers) - set(numbers(await cluster.store.logs(job))))
        told = f"without {', '.join(map(str, missing[:5]))}"
        demand(not missing, "every log of the job in the store", told, job.id)
