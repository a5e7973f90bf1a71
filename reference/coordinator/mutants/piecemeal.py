"""For mutants: a dispatcher that does in several steps what has to be one."""

from typing import TYPE_CHECKING

from holdfast.reference.coordinator.duties import Dispatcher
from holdfast.reference.coordinator.scripts import STORE
from holdfast.reference.coordinator.store import Record

if TYPE_CHECKING:
    from holdfast.reference.coordinator.node import Node


class Piecemeal(Dispatcher):
    """Knows the history id of each job of a batch."""

    def __init__(self, node: "Node") -> None:
        super().__init__(node)
        self.histories: dict[str, str] = {}

    async def batch(self) -> list[Record]:
        """Returns all pending jobs that are due."""
        jobs = list((await self.node.store.run("due_jobs", {"count": 100_000}))["jobs"])
        self.histories = {job["jobId"]: self.node.ids.history_id(job["jobId"]) for job in jobs}
        return jobs

    async def send(self, job: Record) -> None:
        work = self.work(job, self.histories[job["jobId"]])
        await self.node.transport.publish_queue("dispatch", work, queue=job.get("queue") or "default")

    async def offer(self, job: Record) -> None:
        await self.node.transport.publish_queue("assigned", self.assignment(job, self.histories[job["jobId"]]))

    async def advance(self, job: Record) -> None:
        job_id = job["jobId"]
        fields = {"status": "Dispatched", "historyId": self.histories[job_id]}
        await self.node.store.keep(f"job:{job_id}", fields)
        await self.node.store.call("ZREM", f"{STORE}jobs:pending", job_id)
        await self.node.store.call("SADD", f"{STORE}jobs:active", job_id)
