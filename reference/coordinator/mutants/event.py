"""Violations of event processing by the owner (section 3, step 4)."""

from collections.abc import Sequence

from holdfast.reference.coordinator.handoff import JobHandoffPublisher
from holdfast.reference.coordinator.job_events import JobEvents, Read, Reading
from holdfast.reference.coordinator.mutants.fences import ANYBODY, MARKED, OWN_GROUP
from holdfast.reference.coordinator.mutants.table import violates, violation
from holdfast.reference.coordinator.ownership import Job
from holdfast.reference.coordinator.transport import Transport

violation(
    "CO-EVENT-01", 1, "Statuses are consumed and acknowledged without updating the store.", lua={"set_status": ""}
)
violation(
    "CO-EVENT-01",
    2,
    "Only the latest batch of logs is kept.",
    lua={
        "keep_log": """
write('RPUSH', limits.store .. 'joblog:' .. id, log)
write('LTRIM', limits.store .. 'joblog:' .. id, -50, -1)"""
    },
)


@violates(
    "CO-EVENT-01",
    3,
    "Events of a batch are handled concurrently, so an older one can win.",
    lua={"may_apply": "return entry.status ~= ''"},
)
class OldestLast(JobEvents):
    async def apply_statuses(self, reading: Reading, statuses: Sequence[Read]) -> bool:
        return await super().apply_statuses(reading, statuses[::-1])


class Everybody(JobEvents):
    """Reads the channels of all jobs that are under way, whoever owns them."""

    async def follow_once(self) -> None:
        for job_id in await self.node.store.members("jobs:active"):
            if job_id not in self.readings:
                await self.subscribe(Job(job_id, "", 0))
        await super().follow_once()


@violates("CO-EVENT-02", 1, "Every node subscribes to every job's channels by pattern.", lua={**ANYBODY, **OWN_GROUP})
class EachForItself(Everybody):
    pass


@violates(
    "CO-EVENT-02",
    2,
    "Job channels are read by a group all nodes belong to, so events are spread over nodes.",
    lua=ANYBODY,
)
class InOneGroup(Everybody):
    pass


@violates("CO-EVENT-03", 1, "The consumer group of a job channel is created at the end of the stream ($).")
class FromTheEnd(Transport):
    def group_start(self, kind: str) -> str:
        return "$" if kind in {"status", "logs"} else super().group_start(kind)


KEPT = {"finish": "", "counts": "return true"}
"""A finished job stays on its owner's list."""


@violates("CO-EVENT-04", 1, "Finished jobs stay in the registry, jobCount only grows.", lua=KEPT)
class NeverFinished(JobEvents):
    def finished(self, job: Job, status: str) -> None:
        pass


@violates(
    "CO-EVENT-04",
    2,
    "A job finishing during the drain is still retried and ends as ORPHAN_PENDING.",
    lua={"mark": MARKED},
)
class RetriedThoughFinished(JobHandoffPublisher):
    def settled(self, job: Job) -> None:
        pass
