"""Violations of the channels (section 2)."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import hiredis

from holdfast.reference.coordinator.competing import CompetingQueue
from holdfast.reference.coordinator.handoff import JobHandoffSubscriber
from holdfast.reference.coordinator.job_events import JobEvents, Read, Reading
from holdfast.reference.coordinator.messages import Entry
from holdfast.reference.coordinator.mutants.table import violates, violation
from holdfast.reference.coordinator.names import Names
from holdfast.reference.coordinator.topics import Topics
from holdfast.reference.coordinator.transport import Transport

if TYPE_CHECKING:
    from holdfast.reference.coordinator.node import Node


@violates("CO-CHAN-01", 1, "All jobs go to orchestrix.job.dispatch.default.")
class OneQueue(Names):
    def channel(self, kind: str, **ids: str) -> str:
        return super().channel(kind, **{**ids, "queue": "default"} if kind == "dispatch" else ids)


violation(
    "CO-CHAN-01",
    2,
    "Dispatch by PUBLISH (lost without subscriber).",
    lua={"send_work": "write('PUBLISH', facts.dispatchStream, facts.dispatchPayload)"},
)
violation(
    "CO-CHAN-02",
    1,
    "Cancel only flips the status in the store; no message reaches the worker.",
    lua={"tell_workers": "write('HSET', job_key(facts.jobId), 'status', 'Cancelled')"},
)


class GroupPerNode(Transport):
    """Each node reads one of the competing queues through a group of its own."""

    kind = ""

    def group_name(self, kind: str) -> str:
        return f"{super().group_name(kind)}-{self.node.id}" if kind == self.kind else super().group_name(kind)


@violates("CO-CHAN-03", 1, "One group per node on job.assigned: every node receives every assignment.")
class AssignedToAll(GroupPerNode):
    kind = "assigned"


@violates(
    "CO-CHAN-03",
    2,
    "Handoff is broadcast, all nodes take the job.",
    lua={"may_take": "return owner == expected or expected ~= ''"},
)
class HandedToAll(GroupPerNode):
    kind = "handoff"


@violates("CO-CHAN-04", 1, "One global status channel shared by all jobs.")
class GlobalStatus(Names):
    def channel(self, kind: str, **ids: str) -> str:
        return "orchestrix.job.status" if kind == "status" else super().channel(kind, **ids)


@violates("CO-CHAN-04", 2, "Ownership is recorded but the status channel is never read.")
class NoStatus(JobEvents):
    def wanted(self, reading: Reading) -> dict[str, Any]:
        return {**super().wanted(reading), "status": ""}


@violates("CO-CHAN-04", 3, "Only the status channel is subscribed; logs pile up unread.")
class NoLogs(JobEvents):
    def wanted(self, reading: Reading) -> dict[str, Any]:
        return {**super().wanted(reading), "logs": ""}


@violates("CO-CHAN-04", 4, "Logs are subscribed only after the first Running status.")
class LogsOnceRunning(JobEvents):
    def __init__(self, node: "Node") -> None:
        super().__init__(node)
        self.running: set[str] = set()

    def wanted(self, reading: Reading) -> dict[str, Any]:
        return {**super().wanted(reading), **({} if reading.job.id in self.running else {"logs": ""})}

    async def apply_statuses(self, reading: Reading, statuses: Sequence[Read]) -> bool:
        reading.behind = reading.job.id not in self.running
        self.running.add(reading.job.id)
        return await super().apply_statuses(reading, statuses)


class SharedGroup(Topics):
    """Reads one of the topics through a group that all nodes share."""

    kind = ""

    async def listen_once(self) -> None:
        topic, call = self.node.names.channel(self.kind), self.node.store.call
        self.last.pop(topic, None)
        await super().listen_once()
        with suppress(hiredis.ReplyError):
            await call("XGROUP", "CREATE", topic, "all", "$", "MKSTREAM")
        words = ("XREADGROUP", "GROUP", "all", self.node.id, "COUNT", 100, "NOACK", "STREAMS", topic, ">")
        for _, entries in await call(*words) or ():
            for _, fields in entries:
                self.hear(topic, self.node.transport.decode(fields))


@violates("CO-CHAN-05", 1, "Worker heartbeats are read through one shared group, so each reaches one node only.")
class SharedWorkers(SharedGroup):
    kind = "worker_heartbeat"


@violates(
    "CO-CHAN-05",
    2,
    "Coordinator heartbeats are consumed through a shared group; each node sees a third of them and declares live "
    "peers dead.",
)
class SharedCoordinators(SharedGroup):
    kind = "coordinator_heartbeat"


violation(
    "CO-CHAN-06",
    1,
    "Each member is written as its own stream field.",
    lua={
        "publish": """
local words = {'XADD', stream, '*'}
for name, value in pairs(cjson.decode(payload)) do
  words[#words + 1] = name
  words[#words + 1] = tostring(value)
end
write(unpack(words))"""
    },
)


@violates("CO-CHAN-07", 1, "The assignment consumer loop dies on a parse error.")
class DiesOfBadMessages(CompetingQueue):
    async def take(self, entries: list[Entry]) -> None:
        if any(entry.message is None for entry in entries):
            self.at_rest = True
            raise asyncio.CancelledError
        await super().take(entries)


@violates("CO-CHAN-07", 2, "The handoff subscriber loop dies on a missing job record.")
class DiesOfUnknownJobs(JobHandoffSubscriber):
    async def on_handoff(self, entry: Entry) -> None:
        if entry.message and not await self.node.store.job(entry.message.text("jobId")):
            self.node.handoffs.at_rest = True
            raise asyncio.CancelledError
        await super().on_handoff(entry)


violation(
    "CO-CHAN-07",
    3,
    "A handoff of a finished job makes it owned again.",
    lua={"may_own": "return true", "counts": "return true"},
)
