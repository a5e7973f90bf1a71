"""The jobs that this node owns, as it knows them; the truth is in the ownership store."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from holdfast.reference.coordinator.ownership import Job

if TYPE_CHECKING:
    from holdfast.reference.coordinator.node import Node


class Registry:
    def __init__(self, node: "Node") -> None:
        self.node = node
        self.jobs: dict[str, Job] = {}

    async def take(self, job: Job) -> None:
        """Adds a job that the store has given to this node, and subscribes to its channels."""
        self.add(job)
        await self.node.job_events.subscribe(job)

    def add(self, job: Job) -> None:
        self.jobs[job.id] = job

    def remove(self, job: Job) -> None:
        if self.jobs.get(job.id) == job:
            del self.jobs[job.id]

    def drop(self, job: Job) -> None:
        """Forgets a job that is another's now, and leaves its channels."""
        self.remove(job)
        self.node.job_events.leave(job)

    def count(self) -> int:
        return len(self.jobs)

    async def load_at_start(self) -> None:
        """Takes up the jobs that an earlier process of this node has left."""
        for job in (await self.node.ownership.jobs(anew=True)).values():
            await self.take(job)

    async def verify(self) -> None:
        """Compares with the store: a node that was frozen may have lost jobs, and the answer to a claim may be lost."""
        known = list(self.jobs.values())
        stored = await self.node.ownership.jobs()
        for job in known:
            if stored.get(job.id) != job:
                self.drop(job)
        await self.adopt(stored)

    async def adopt(self, stored: Mapping[str, Job]) -> None:
        """Takes up jobs that the store has for this node."""
        for job in stored.values():
            if job.id not in self.jobs:
                await self.take(job)
