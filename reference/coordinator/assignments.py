"""Competition for new jobs (section 3, step 2): precisely one coordinator becomes the owner of each."""

from typing import TYPE_CHECKING

from holdfast.reference.coordinator.messages import Entry, Message
from holdfast.reference.coordinator.ownership import Claim

if TYPE_CHECKING:
    from holdfast.reference.coordinator.node import Node


class AssignmentConsumer:
    def __init__(self, node: "Node") -> None:
        self.node = node

    def enabled(self) -> bool:
        """Every node competes, the leader too."""
        return True

    async def stop(self) -> None:
        """Takes no more; what was received already is taken."""
        await self.node.assigned.stop()

    async def on_assigned(self, entry: Entry) -> None:
        """Stores the ownership and subscribes; the entry is acknowledged when this returns, not before."""
        message = entry.message
        if message is None or not message.text("jobId"):
            return
        claim = await self.claim(message)
        if claim.mine:
            await self.node.registry.take(claim.job)
            self.node.events.emit("job.owned", jobId=claim.job.id, by="assignment")

    async def claim(self, message: Message) -> Claim:
        """Claims a job that nobody owns yet; one that is offered twice has its owner already."""
        new = {"historyId": message.history_id, "jobType": message.text("jobType"), "queue": message.text("queue")}
        return await self.node.ownership.claim(message.text("jobId"), "", **new)
