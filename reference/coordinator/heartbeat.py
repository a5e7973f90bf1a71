"""CoordinatorHeartbeatService: every node beats at every HeartbeatInterval until it exits, draining or not."""

import os
import resource
import socket
from contextlib import suppress
from typing import TYPE_CHECKING

from holdfast.reference.coordinator.messages import Payload, encode
from holdfast.reference.coordinator.store import AWAY

if TYPE_CHECKING:
    from holdfast.reference.coordinator.node import Node


class CoordinatorHeartbeatService:
    def __init__(self, node: "Node") -> None:
        self.node = node
        self.beat_at = node.clock.now()
        self.used = 0.0
        self.told = 0

    def interval(self) -> float:
        return self.node.settings.heartbeat_interval

    async def run(self) -> None:
        """Beats on a schedule that does not drift; beats that were missed are not made up for."""
        due = self.node.clock.now()
        while True:
            with suppress(*AWAY):
                await self.beat()
            due = max(due + self.interval(), self.node.clock.now())
            await self.node.clock.sleep(due - self.node.clock.now())

    async def beat(self) -> None:
        """Publishes how many jobs this node owns now; it asks the store first, for it may have lost some unawares."""
        await self.node.registry.verify()
        payload, count = self.payload(), self.node.registry.count()
        await self.node.transport.publish_topic("coordinator_heartbeat", payload)
        self.told = count
        self.node.metrics.jobs.set(self.node.registry.count())
        said = {name: payload[name] for name in ("nodeId", "role", "status", "jobCount") if name in payload}
        record = encode({**said, "lastHeartbeat": self.node.clock.stamp()})
        await self.node.store.keep("nodes", {self.node.id: record})

    def payload(self) -> Payload:
        now, used = self.node.clock.now(), resource.getrusage(resource.RUSAGE_SELF)
        spent = used.ru_utime + used.ru_stime
        millicores = int(1000 * (spent - self.used) / max(now - self.beat_at, 0.001))
        self.beat_at, self.used = now, spent
        return {
            "nodeId": self.node.id,
            "role": self.role(),
            "status": self.status(),
            "jobCount": self.job_count(),
            "timestamp": self.node.clock.stamp(),
            "cpuMillicores": millicores,
            "memoryUsageBytes": used.ru_maxrss * 1024,
            "hostname": socket.gethostname(),
            "processId": os.getpid(),
            "metadata": None,
        }

    def role(self) -> str:
        return "Leader" if self.node.lease.is_leader() else "Follower"

    def status(self) -> str:
        return "Draining" if self.node.draining else "Active"

    def job_count(self) -> int:
        return self.node.registry.count()
