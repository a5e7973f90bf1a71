"""Violations of heartbeats and load figures (sections 3 L2, 5)."""

import socket

from holdfast.reference.coordinator.heartbeat import CoordinatorHeartbeatService
from holdfast.reference.coordinator.ids import Ids
from holdfast.reference.coordinator.messages import Payload
from holdfast.reference.coordinator.mutants.table import violates
from holdfast.reference.coordinator.registry import Registry


@violates("CO-BEAT-01", 1, "The interval is half as long again (15 s).")
class Slow(CoordinatorHeartbeatService):
    def interval(self) -> float:
        return 1.5 * super().interval()


@violates("CO-BEAT-01", 2, "Heartbeats are part of the leader loop; followers are silent.")
class LeaderOnly(CoordinatorHeartbeatService):
    async def beat(self) -> None:
        if self.node.lease.is_leader():
            await super().beat()


@violates("CO-BEAT-01", 3, "The heartbeat task is cancelled first thing on SIGTERM.")
class SilentDrain(CoordinatorHeartbeatService):
    async def beat(self) -> None:
        if not self.node.draining:
            await super().beat()


@violates("CO-BEAT-02", 1, "Timestamp is missing.")
class NoTimestamp(CoordinatorHeartbeatService):
    def payload(self) -> Payload:
        return {name: value for name, value in super().payload().items() if name != "timestamp"}


@violates("CO-BEAT-02", 2, "Timestamp is the node's start time.")
class StartTime(CoordinatorHeartbeatService):
    started = ""

    def payload(self) -> Payload:
        self.started = self.started or self.node.clock.stamp()
        return {**super().payload(), "timestamp": self.started}


@violates("CO-BEAT-02", 3, "Node id defaults to the host name, equal for all nodes of one machine.")
class HostName(Ids):
    def node_id(self) -> str:
        return socket.gethostname()


@violates("CO-BEAT-03", 1, "jobCount is always 0: the counter is never fed.")
class CountsNothing(CoordinatorHeartbeatService):
    def job_count(self) -> int:
        return 0


@violates("CO-BEAT-03", 2, "Jobs gained by handoff are not counted.")
class CountsFirstOwners(Registry):
    def count(self) -> int:
        return sum(job.epoch == 1 for job in self.jobs.values())


@violates("CO-BEAT-04", 1, "Role is always Follower.")
class AlwaysFollower(CoordinatorHeartbeatService):
    def role(self) -> str:
        return "Follower"


@violates("CO-BEAT-04", 2, "Status stays Active until exit.")
class AlwaysActive(CoordinatorHeartbeatService):
    def status(self) -> str:
        return "Active"
