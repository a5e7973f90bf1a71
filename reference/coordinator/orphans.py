"""OrphanJobDetector (section 4, scenario B): the leader finds the jobs of dead nodes and publishes them again.

An orphan is published once per check, until somebody owns it. The first check is made as soon as the node leads.
"""

from contextlib import suppress
from typing import TYPE_CHECKING

from holdfast.reference.coordinator.duties import Duty
from holdfast.reference.coordinator.handoff import handoff
from holdfast.reference.coordinator.messages import NODE_CRASH, Payload, encode
from holdfast.reference.coordinator.ownership import Orphan
from holdfast.reference.coordinator.store import AWAY

if TYPE_CHECKING:
    from holdfast.reference.coordinator.node import Node


class OrphanJobDetector(Duty):
    def __init__(self, node: "Node") -> None:
        super().__init__(node)
        self.due = node.clock.now()

    def interval(self) -> float:
        return self.node.settings.orphan_check_interval

    async def run(self) -> None:
        while True:
            await self.look()
            wait = self.due - self.node.clock.now()
            await self.node.clock.sleep(min(max(wait, 0.01), self.node.settings.elect_poll))

    async def look(self) -> None:
        """Makes a check if one is due; it is due at once when the node becomes the leader."""
        now = self.node.clock.now()
        if not self.should_run():
            self.due = now
        elif now >= self.due:
            self.due = now + self.interval()
            with suppress(*AWAY):
                await self.scan()

    async def scan(self) -> None:
        for orphan in await self.query(await self.node.health.dead_owners()):
            if self.should_run():
                await self.publish(orphan)

    async def query(self, dead: set[str]) -> list[Orphan]:
        """Returns the unfinished jobs of dead nodes, and those that a node has given up while draining."""
        return await self.node.ownership.orphans(dead)

    async def publish(self, orphan: Orphan) -> None:
        stream, payload = self.node.names.channel("handoff"), encode(self.payload(orphan))
        facts = {"jobId": orphan.id, "owner": orphan.owner, "stream": stream, "payload": payload}
        if (await self.act("republish", **facts))["result"] == 1:
            self.node.metrics.handoffs.labels(NODE_CRASH).inc()
            self.node.events.emit("job.handoff", jobId=orphan.id, reason=NODE_CRASH, fromNodeId=orphan.owner)

    def payload(self, orphan: Orphan) -> Payload:
        """Returns a handoff from the dead node, acknowledged to the leader."""
        stamp = self.node.clock.stamp()
        return handoff(orphan.id, orphan.history_id, NODE_CRASH, orphan.owner, self.node.id, stamp)
