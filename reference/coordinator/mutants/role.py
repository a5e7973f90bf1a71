"""Violations of who does what (section 1)."""

from holdfast.reference.coordinator.assignments import AssignmentConsumer
from holdfast.reference.coordinator.duties import Dispatcher, Scheduler, TimeoutMonitor
from holdfast.reference.coordinator.job_events import JobEvents
from holdfast.reference.coordinator.lease import Lease
from holdfast.reference.coordinator.mutants.fences import UNFENCED
from holdfast.reference.coordinator.mutants.table import violates
from holdfast.reference.coordinator.scripts import STORE


@violates(
    "CO-ROLE-01", 1, "The result of the acquire call is ignored and every node sets its leader flag.", lua=UNFENCED
)
class EveryoneLeads(Lease):
    async def acquire(self) -> bool:
        await super().acquire()
        return True

    def is_leader(self) -> bool:
        return True


@violates(
    "CO-ROLE-01",
    2,
    "The lock is released after each round of leader work, so leadership wanders among healthy nodes.",
)
class ReleasesEachRound(Dispatcher):
    async def scan(self) -> None:
        await super().scan()
        await self.node.lease.release()


@violates(
    "CO-ROLE-02",
    1,
    "The schedule scanner runs on every node without a leader check (three jobs per due time).",
    lua=UNFENCED,
)
class EveryScanner(Scheduler):
    def should_run(self) -> bool:
        return True

    async def fire(self, id_: str) -> int:
        for _ in self.node.health.live_peers():  # each has found it due by now, and makes a job
            queue = await self.node.store.call("HGET", f"{STORE}schedule:{id_}", "queue")
            job_id, fields = self.node.ids.job_id(), {"status": "Pending", "queue": (queue or b"default").decode()}
            await self.node.store.keep(f"job:{job_id}", fields)
            await self.node.store.call("ZADD", f"{STORE}jobs:pending", 0, job_id)
        return await super().fire(id_)


@violates("CO-ROLE-02", 2, "The dispatch loop lacks the leader check on followers.", lua=UNFENCED)
class EveryDispatcher(Dispatcher):
    def should_run(self) -> bool:
        return True


@violates("CO-ROLE-03", 1, "No timeout scan exists: a silent job stays Running for ever.")
class NoTimeouts(TimeoutMonitor):
    async def scan(self) -> None:
        pass


@violates(
    "CO-ROLE-03",
    2,
    "Every node scans for timeouts without a leader check, so jobs are marked while nobody leads.",
    lua=UNFENCED,
)
class EveryMonitor(TimeoutMonitor):
    def should_run(self) -> bool:
        return True


@violates("CO-ROLE-04", 1, "A node that becomes leader stops consuming orchestrix.job.assigned.")
class LeaderTakesNone(AssignmentConsumer):
    def enabled(self) -> bool:
        return not self.node.lease.is_leader()


@violates(
    "CO-ROLE-04",
    2,
    "Active-passive: a node that finds a leader at start-up stays a standby and consumes nothing.",
)
class Standby(AssignmentConsumer):
    def enabled(self) -> bool:
        return self.node.lease.terms > 0


@violates("CO-ROLE-05", 1, "Event subscription starts only after the node has seen a leader.")
class WaitsForALeader(JobEvents):
    def may_process(self) -> bool:
        return self.node.lease.terms > 0 or any(peer.role == "Leader" for peer in self.node.health.peers.values())


@violates("CO-ROLE-05", 2, "Followers pause event processing when the leader's heartbeat or lock is gone.")
class PausesWithoutALeader(JobEvents):
    def may_process(self) -> bool:
        recent, health = 1.5 * self.node.settings.heartbeat_interval, self.node.health
        leaders = [name for name, peer in health.peers.items() if peer.role == "Leader"]
        return self.node.lease.is_leader() or any(health.silence(name) < recent for name in leaders)
