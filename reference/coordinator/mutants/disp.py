"""Violations of dispatch and the offer of ownership (section 3, step 1)."""

import uuid

from holdfast.reference.coordinator.duties import Dispatcher
from holdfast.reference.coordinator.ids import Ids
from holdfast.reference.coordinator.messages import Payload, execution
from holdfast.reference.coordinator.mutants.piecemeal import Piecemeal
from holdfast.reference.coordinator.mutants.table import violates, violation
from holdfast.reference.coordinator.store import Record

violation(
    "CO-DISP-01",
    1,
    "The status is not advanced after publishing, so each scan dispatches the job again.",
    lua={"advance": "write('HSET', job_key(facts.jobId), 'historyId', facts.historyId)"},
)
violation(
    "CO-DISP-01",
    2,
    "The due time is ignored when pending jobs are listed.",
    lua={"latest_due": "return '+inf'"},
)
violation(
    "CO-DISP-02",
    1,
    "Nothing is published on job.assigned; the dispatching leader keeps the job itself.",
    lua={"offer": "own(facts.jobId, string.match(facts.token, '^(.*):'), '')"},
)


@violates("CO-DISP-02", 2, "A fresh id is generated for the assignment message.")
class AnotherHistory(Dispatcher):
    def assignment(self, job: Record, history_id: str) -> Payload:
        return {**super().assignment(job, history_id), **execution(str(uuid.uuid4()))}


@violates("CO-DISP-02", 3, "HistoryId is a copy of JobId.")
class HistoryIsJob(Ids):
    def history_id(self, job_id: str) -> str:
        return job_id


@violates(
    "CO-DISP-03",
    1,
    "Publish and status change are separate steps, with the change batched at the end of the scan.",
)
class AdvancedLater(Piecemeal):
    async def scan(self) -> None:
        jobs = await self.batch()
        for job in jobs:
            await self.send(job)
            await self.offer(job)
        for job in jobs:
            await self.advance(job)


@violates(
    "CO-DISP-03",
    2,
    "Assignments are published in a second pass over the batch, so a crash leaves dispatched jobs that nobody was "
    "offered.",
)
class OfferedLater(Piecemeal):
    async def scan(self) -> None:
        jobs = await self.batch()
        for job in jobs:
            await self.send(job)
            await self.advance(job)
        for job in jobs:
            await self.offer(job)
