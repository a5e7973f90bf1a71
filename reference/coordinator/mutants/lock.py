"""Violations of leader election (section 1)."""

from math import inf
from typing import TYPE_CHECKING

from holdfast.reference.coordinator.lease import Challenge, Lease
from holdfast.reference.coordinator.mutants.fences import UNFENCED
from holdfast.reference.coordinator.mutants.table import violates, violation
from holdfast.reference.coordinator.store import AWAY

if TYPE_CHECKING:
    from holdfast.reference.coordinator.node import Node


@violates("CO-LOCK-01", 1, "The key is suffixed with the node id or queue, so that every node gets a lock.")
class LockOfItsOwn(Lease):
    def __init__(self, node: "Node") -> None:
        super().__init__(node)
        self.key = f"{self.key}:{node.id}"


@violates("CO-LOCK-01", 2, "SET without NX at start-up.")
class TakesItAtStart(Lease):
    async def set_lock(self, value: str, lease_ms: int) -> bool:
        if not self.value:
            self.value = value
            await self.node.store.call("DEL", self.key)
        return await super().set_lock(value, lease_ms)


violation("CO-LOCK-02", 1, "The lease is twice as long (60 s).", lambda s: {"lease": 2 * s.lease})
violation(
    "CO-LOCK-02",
    2,
    "Renewal comes every 25 s instead of every 10 s.",
    lambda s: {"renew_interval": 2.5 * s.renew_interval},
)


@violates("CO-LOCK-02", 3, "SETNX followed by a separate EXPIRE.")
class TwoSteps(Lease):
    async def set_lock(self, value: str, lease_ms: int) -> bool:
        taken = bool(await self.node.store.call("SETNX", self.key, value))
        return taken and bool(await self.node.store.call("PEXPIRE", self.key, lease_ms))


@violates("CO-LOCK-03", 1, "Election is tried once at start-up only; survivors never try again.")
class TriesOnce(Challenge):
    tried = False

    def may_challenge(self) -> bool:
        first, self.tried = not self.tried, True
        return first


@violates("CO-LOCK-03", 2, "A follower deletes the lock when it misses one heartbeat of the leader.")
class Impatient(Lease):
    deposed: frozenset[str] = frozenset()

    async def acquire(self) -> bool:
        health, missed = self.node.health, 1.5 * self.node.settings.heartbeat_interval
        leaders = {name for name, peer in health.peers.items() if peer.role == "Leader"}
        silent = {name for name in leaders - self.deposed if health.silence(name) > missed}
        if silent:
            self.deposed |= silent
            await self.node.store.call("DEL", self.key)
        return await super().acquire()


@violates(
    "CO-LOCK-04",
    1,
    "Renewal by SET with XX (exists) instead of compare-and-extend: the stale leader steals the lock back.",
)
class RenewsBySet(Lease):
    async def renew_once(self) -> bool:
        lease = int(self.node.settings.lease * 1000)
        return await self.node.store.call("SET", self.key, self.value, "XX", "PX", lease) is not None


@violates("CO-LOCK-04", 2, "A constant value such as 1 for all nodes, which makes every token compare succeed.")
class OneToken(Lease):
    def token(self) -> str:
        return "1"


@violates("CO-LOCK-05", 1, "A failed renewal is logged and the leader flag stays set.", lua=UNFENCED)
class StaysLeader(Lease):
    def on_lost(self) -> None:
        self.deadline = inf


@violates("CO-LOCK-05", 2, "Losing the lock makes the node exit or drop its job subscriptions.")
class DropsItsJobs(Lease):
    def on_lost(self) -> None:
        super().on_lost()
        self.node.job_events.readings.clear()


@violates(
    "CO-LOCK-05",
    3,
    "Renewal of a missing key is treated as success (result of the expiry command ignored); two nodes lead.",
    lua=UNFENCED,
)
class IgnoresTheResult(Lease):
    async def renew_once(self) -> bool:
        await super().renew_once()
        return True


class Flag(Lease):
    """Leads until somebody says that it does not: no clock ends it."""

    def is_leader(self) -> bool:
        return self.deadline > -inf


@violates(
    "CO-LOCK-06",
    1,
    "Leadership is a flag refreshed only by the renew loop; the dispatch tick runs first after SIGCONT.",
    lua=UNFENCED,
)
class RefreshedByRenewal(Flag):
    async def renew_once(self) -> bool:
        await self.clock.sleep(self.node.settings.dispatch_scan)
        return await super().renew_once()


@violates(
    "CO-LOCK-06",
    2,
    "Connection errors in the renew loop are retried with the leader flag still set, and queued leader writes are "
    "flushed on reconnect.",
    lua=UNFENCED,
)
class LeadsThroughErrors(Flag):
    async def renew(self) -> bool:
        try:
            return await super().renew()
        except AWAY:
            return True


@violates("CO-LOCK-07", 1, "The lock is left to expire.")
class LeavesTheLock(Lease):
    async def release(self) -> None:
        self.deadline = -inf


@violates("CO-LOCK-07", 2, "Unconditional DEL on shutdown.")
class DeletesAnyLock(Lease):
    async def release(self) -> None:
        self.deadline = -inf
        await self.node.store.call("DEL", self.key)
