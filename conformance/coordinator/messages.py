"""Messages that the suite sends itself, as worker, as client and as a coordinator. Pure.

Each function returns the members of one message of the contract, with the names that the document and the public
project give them. What is None is left out.
"""

import uuid
from dataclasses import dataclass, field
from typing import Any

from holdfast.conformance.coordinator.wire import ACTIVE, FOLLOWER, Payload

QUEUE = "default"


def new_id() -> str:
    """Returns an id in the form that every implementation can read."""
    return str(uuid.uuid4())


@dataclass(frozen=True)
class Job:
    """A job as the suite knows it: its ids, and the queue that it is for."""

    id: str = field(default_factory=new_id)
    history_id: str = field(default_factory=new_id)
    queue: str = QUEUE

    @property
    def ids(self) -> dict[str, str]:
        """What stands in the names of its channels."""
        return {"jobId": self.id, "executionId": self.history_id}


def _given(**members: Any) -> Payload:
    return {name: value for name, value in members.items() if value is not None}


def assigned(job: Job, at: str | None = None) -> Payload:
    """An offer of ownership."""
    return _given(jobId=job.id, historyId=job.history_id, executionId=job.history_id, queue=job.queue, timestamp=at)


def status(job: Job, status: str, *, error: str | None = None, at: str | None = None) -> Payload:
    """A worker's report on a job; `at` is when the job ended."""
    return _given(jobId=job.id, executionId=job.history_id, status=status, error=error, completedAt=at)


def log(job: Job, text: str, level: str = "Information") -> Payload:
    return _given(jobId=job.id, executionId=job.history_id, level=level, message=text)


def handoff(
    job: Job, reason: str, *, from_node: str | None = None, ack_to: str | None = None, bare: bool = False
) -> Payload:
    """A handoff; a `bare` one has the document's two members and nothing else."""
    history = None if bare else job.history_id
    return _given(
        jobId=job.id, reason=reason, historyId=history, executionId=history, fromNodeId=from_node, ackTo=ack_to
    )


def ack(job_id: str, new_owner: str | None, *, at: str | None = None) -> Payload:
    return _given(jobId=job_id, newOwner=new_owner, timestamp=at)


def beat(node_id: str, job_count: int, at: str, *, status: str = ACTIVE, role: str = FOLLOWER) -> Payload:
    return _given(nodeId=node_id, jobCount=job_count, timestamp=at, role=role, status=status)


def worker_beat(worker_id: str, at: str, queues: tuple[str, ...] = (QUEUE,)) -> Payload:
    return _given(
        workerId=worker_id, status="Running", queues=list(queues), activeJobs=0, maxConcurrentJobs=1, timestamp=at
    )
