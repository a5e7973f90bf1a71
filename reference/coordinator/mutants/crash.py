"""Violations of detection and orphan recovery (section 4, scenario B)."""

from collections import defaultdict
from datetime import UTC, datetime
from math import inf
from typing import TYPE_CHECKING

from holdfast.reference.coordinator.assignments import AssignmentConsumer
from holdfast.reference.coordinator.handoff import JobHandoffSubscriber
from holdfast.reference.coordinator.health import CoordinatorHealthMonitor
from holdfast.reference.coordinator.messages import SHUTDOWN, Message, Payload
from holdfast.reference.coordinator.mutants.fences import ANYBODY, UNFENCED
from holdfast.reference.coordinator.mutants.table import violates, violation
from holdfast.reference.coordinator.orphans import OrphanJobDetector
from holdfast.reference.coordinator.ownership import Claim, Orphan
from holdfast.reference.coordinator.registry import Registry

if TYPE_CHECKING:
    from holdfast.reference.coordinator.node import Node

violation(
    "CO-CRASH-01",
    1,
    "Dead after one missed heartbeat (10 s).",
    lambda s: {"dead_node_timeout": 1.2 * s.heartbeat_interval},
)


@violates("CO-CRASH-01", 2, "Orphans are looked for once, when a node becomes leader.")
class LooksOnce(OrphanJobDetector):
    def interval(self) -> float:
        return inf


@violates("CO-CRASH-02", 1, "Silence is accumulated and never reset by a new heartbeat.")
class Accumulates(CoordinatorHealthMonitor):
    def __init__(self, node: "Node") -> None:
        super().__init__(node)
        self.missed: dict[str, float] = defaultdict(float)

    def on_heartbeat(self, message: Message, received_at: float) -> None:
        peer, usual = self.peers.get(message.text("nodeId")), 1.2 * self.node.settings.heartbeat_interval
        if peer is not None and received_at - peer.heard > usual:
            self.missed[message.text("nodeId")] += received_at - peer.heard
        super().on_heartbeat(message, received_at)

    def silence(self, node_id: str) -> float:
        return super().silence(node_id) + self.missed[node_id]


@violates(
    "CO-CRASH-02",
    2,
    "Now minus message timestamp is compared with the timeout, so clock skew kills live nodes.",
)
class BelievesTimestamps(CoordinatorHealthMonitor):
    def on_heartbeat(self, message: Message, received_at: float) -> None:
        said = datetime.fromisoformat(message.text("timestamp"))
        super().on_heartbeat(message, received_at - (datetime.now(UTC) - said).total_seconds())


@violates("CO-CRASH-03", 1, "Reason Shutdown is used for crash handoffs.")
class ReasonShutdown(OrphanJobDetector):
    def payload(self, orphan: Orphan) -> Payload:
        return {**super().payload(orphan), "reason": SHUTDOWN}


violation(
    "CO-CRASH-03",
    2,
    "The query filters by owner only, so finished jobs come back.",
    lua={"is_orphan": "return dead"},
)
violation(
    "CO-CRASH-03",
    3,
    "The query filters by status only and re-publishes all running jobs.",
    lua={"is_orphan": "return not is_terminal(job.status)"},
)


@violates("CO-CRASH-04", 1, "Each survivor publishes the orphans it noticed.", lua=UNFENCED)
class EachSurvivor(OrphanJobDetector):
    def should_run(self) -> bool:
        return True


@violates("CO-CRASH-05", 1, "The detector publishes on every dispatch tick until someone takes the job.")
class EveryTick(OrphanJobDetector):
    def interval(self) -> float:
        return self.node.settings.dispatch_scan


@violates("CO-CRASH-05", 2, "A list of already published jobs is never cleared.")
class PublishesOnce(OrphanJobDetector):
    def __init__(self, node: "Node") -> None:
        super().__init__(node)
        self.published: set[str] = set()

    async def publish(self, orphan: Orphan) -> None:
        if orphan.id not in self.published:
            self.published.add(orphan.id)
            await super().publish(orphan)


violation(
    "CO-CRASH-06",
    1,
    "Status = Running is taken literally.",
    lua={"is_orphan": "return job.status == 'Running' and (dead or job.ownershipState == 'ORPHAN_PENDING')"},
)


@violates(
    "CO-CRASH-07",
    1,
    "The takeover compares the message's sender with the recorded owner and refuses crash handoffs.",
)
class ComparesTheSender(JobHandoffSubscriber):
    async def claim(self, message: Message, former: str) -> Claim:
        return await super().claim(message, message.text("ackTo") or former)


@violates("CO-CRASH-07", 2, "One dead node is dealt with per check; the second waits for the next.")
class OnePerCheck(OrphanJobDetector):
    async def query(self, dead: set[str]) -> list[Orphan]:
        return await super().query(set(sorted(dead)[:1]))


violation(
    "CO-CRASH-08",
    1,
    "The orphan query skips marked jobs: they are excluded as already being handled.",
    lua={"is_orphan": "return not is_terminal(job.status) and dead and job.ownershipState ~= 'ORPHAN_PENDING'"},
)


@violates("CO-CRASH-09", 1, "Health tracking runs on the leader only and starts empty on takeover.")
class LeaderTracks(CoordinatorHealthMonitor):
    def on_heartbeat(self, message: Message, received_at: float) -> None:
        if self.node.lease.is_leader():
            super().on_heartbeat(message, received_at)

    def notice(self, owners: set[str]) -> None:
        super().notice(owners if self.node.lease.is_leader() else set())


@violates(
    "CO-CRASH-10",
    1,
    "The in-memory registry is trusted after the pause; both nodes read the channel.",
    lua=ANYBODY,
)
class TrustsItself(Registry):
    async def verify(self) -> None:
        pass


@violates("CO-CRASH-10", 2, "Dead is for ever: the node consumes nothing and is ignored until everyone restarts.")
class DeadForEver(AssignmentConsumer):
    asked = inf
    dead = False

    def enabled(self) -> bool:
        asked, self.asked = self.asked, self.node.clock.now()
        self.dead = self.dead or self.asked - asked > self.node.settings.dead_node_timeout
        return not self.dead


@violates(
    "CO-CRASH-10",
    3,
    "A node once handled as dead is remembered as done; its second crash is not recovered.",
)
class HandledOnce(OrphanJobDetector):
    done: frozenset[str] = frozenset()

    async def query(self, dead: set[str]) -> list[Orphan]:
        fresh, self.done = dead - self.done, self.done | dead
        return await super().query(fresh)
