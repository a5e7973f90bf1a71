"""Violations of what failures leave behind (section 7)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from holdfast.reference.coordinator.duties import Dispatcher, Scheduler
from holdfast.reference.coordinator.handoff import JobHandoffPublisher, Offer
from holdfast.reference.coordinator.health import CoordinatorHealthMonitor
from holdfast.reference.coordinator.job_events import JobEvents, Read, Reading
from holdfast.reference.coordinator.lease import Challenge, Lease
from holdfast.reference.coordinator.mutants.fences import OWN_GROUP
from holdfast.reference.coordinator.mutants.table import violates, violation
from holdfast.reference.coordinator.ownership import Job
from holdfast.reference.coordinator.registry import Registry
from holdfast.reference.coordinator.scripts import STORE
from holdfast.reference.coordinator.store import Record
from holdfast.reference.coordinator.transport import Send, Transport

if TYPE_CHECKING:
    from holdfast.reference.coordinator.node import Node


@violates("CO-FAIL-01", 1, "The new holder of the lock does not start the leader loops.")
class LateLeaderIdles(Lease):
    late = False

    async def acquire(self) -> bool:
        won = await super().acquire()
        self.late = self.late or not won
        return won

    def may_act(self) -> bool:
        return super().may_act() and not self.late


@violates("CO-FAIL-01", 2, "Due schedules are kept in the leader's memory; missed ones are skipped.")
class SkipsTheMissed(Scheduler):
    term = 0

    async def scan(self) -> None:
        missed = await self.due() if self.term != self.node.lease.terms else []
        for id_ in missed:
            interval = await self.node.store.call("HGET", f"{STORE}schedule:{id_}", "intervalMs")
            await self.node.store.call("ZINCRBY", f"{STORE}schedules", interval or 0, id_)
        self.term = self.node.lease.terms
        await super().scan()


@violates("CO-FAIL-02", 1, "Any membership change triggers a new election.")
class ElectsAnew(Challenge):
    def on_membership_change(self, peers: Mapping[str, Any]) -> None:  # noqa: ARG002  # whoever is there
        if self.node.lease.is_leader():
            self.node.spawn(self.node.lease.release())


@violates(
    "CO-FAIL-03",
    1,
    "XREADGROUP with NOACK, or XACK before the store write.",
    lua={
        "new_entries": """
local command = {'XREADGROUP', 'GROUP', group_of(node), node, 'COUNT', whole(count), 'NOACK', 'STREAMS', stream, '>'}
local reply = redis.pcall(unpack(command))
return type(reply) == 'table' and not reply.err and reply[1] and reply[1][2] or {}""",
        "acknowledge": "return true",
    },
)
class TakenOffFirst(JobEvents):
    async def handle(self, reading: Reading, statuses: list[Read], logs: list[Read], *, pending: bool) -> bool:
        await self.node.clock.sleep(0.1)  # what was read is in hand for a while
        return await super().handle(reading, statuses, logs, pending=pending)


@violates("CO-FAIL-03", 2, "The new owner reads only undelivered entries.")
class UndeliveredOnly(JobEvents):
    async def recover_pending(self, reading: Reading) -> None:
        pass


@violates("CO-FAIL-03", 3, "The new owner starts at the end of the stream with a fresh group.", lua=OWN_GROUP)
class FreshGroup(Transport):
    def group_name(self, kind: str) -> str:
        own = kind in {"status", "logs"}
        return f"{super().group_name(kind)}:{self.node.id}" if own else super().group_name(kind)

    def group_start(self, kind: str) -> str:
        return "$" if kind in {"status", "logs"} else super().group_start(kind)


@violates("CO-FAIL-04", 1, "The ownership store is not read at start-up.")
class StartsEmpty(Registry):
    async def load_at_start(self) -> None:
        pass

    async def adopt(self, stored: Mapping[str, Job]) -> None:
        pass


@violates("CO-FAIL-04", 2, "Streams or groups are dropped and re-created at start-up.")
class DropsStreams(Transport):
    async def join(self, call: Send, stream: str, kind: str) -> None:
        if kind in {"status", "logs"} and not self.node.ready:
            await call("DEL", stream)
        await super().join(call, stream, kind)


@violates(
    "CO-FAIL-05",
    1,
    "Only nodes once seen alive by the present processes can be declared dead; jobs of unknown owners are ignored.",
)
class KnowsTheSeen(CoordinatorHealthMonitor):
    def is_dead(self, node_id: str) -> bool:
        return node_id in self.peers and super().is_dead(node_id)


@violates("CO-FAIL-06", 1, "Jobs older than the leader's start are taken as handled.")
class SkipsTheOld(Dispatcher):
    def __init__(self, node: "Node") -> None:
        super().__init__(node)
        self.term, self.old = 0, set[str]()

    async def due(self) -> list[Record]:
        jobs = await super().due()
        if self.term != self.node.lease.terms:
            self.term, self.old = self.node.lease.terms, {job["jobId"] for job in jobs}
        return [job for job in jobs if job["jobId"] not in self.old]


@violates("CO-FAIL-06", 2, "Groups on job.assigned and job.handoff are created at the end of the stream.")
class FromTheEnd(Transport):
    def group_start(self, kind: str) -> str:
        return "$" if kind in {"assigned", "handoff"} else super().group_start(kind)


@violates(
    "CO-FAIL-07",
    1,
    "A late replay of an older pending event overwrites a newer status.",
    lua={"may_apply": "return entry.status ~= ''"},
)
class ReplaysLate(JobEvents):
    async def recover_pending(self, reading: Reading) -> None:
        await self.process([reading])
        await super().recover_pending(reading)


violation(
    "CO-FAIL-08",
    1,
    "Jobs in handoff are exempt from the orphan query.",
    lua={"is_orphan": "return not is_terminal(job.status) and dead and job.ownershipState ~= 'HandingOff'"},
)


@violates(
    "CO-FAIL-08",
    2,
    "A handoff entry that some consumer has read or XACKed counts as acknowledged, so no retry follows.",
)
class ReadIsTaken(JobHandoffPublisher):
    async def settled_within(self, offer: Offer, seconds: float) -> bool:
        settled = await super().settled_within(offer, seconds)
        words = (await self.node.store.call("XINFO", "GROUPS", self.node.names.channel("handoff")))[0]
        if not settled and dict(zip(words[::2], words[1::2], strict=True)).get(b"lag") == 0:
            offer.settle("")
        return offer.settled.done()


violation(
    "CO-FAIL-09",
    1,
    "XADD with MAXLEN ~ 10000 on every channel.",
    lua={"publish": "write('XADD', stream, 'MAXLEN', '~', 10000, '*', 'data', payload)"},
)
