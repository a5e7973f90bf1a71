"""The owner of a job processes its status and logs (section 3, steps 3 and 4).

Each job has two channels of its own and its owner reads both. Redis shows which of them have something new; then one
script reads them, for jobs that are still this node's (`lua/events/read_events.lua`), and one applies what was read and
acknowledges it. So nobody reads for a job that another owns, an entry takes effect once, and what a former owner was
given and did not finish is pending, where the new owner looks before it reads anything new.

Logs of a reading are applied before its status reports: the report that ends a job finds all earlier logs stored. Its
owner goes on reading for a moment, for logs that a worker sends a little late.
"""

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import hiredis

from holdfast.reference.coordinator.messages import LEVELS, STATUSES, Message, decode, encode
from holdfast.reference.coordinator.ownership import Job
from holdfast.reference.coordinator.store import AWAY
from holdfast.reference.shared.redislink import RedisLink

if TYPE_CHECKING:
    from holdfast.reference.coordinator.node import Node

RETRY_SECONDS = 0.1
Read = tuple[str, str]
"""Id and text of an entry that was read."""


@dataclass
class Reading:
    """A job whose channels this node reads. `last` has, by channel, the last entry that this node knows of.

    It is `behind` until both channels have been looked at in full, which happens once at a time (`busy`).
    """

    job: Job
    status: str
    logs: str
    last: dict[str, str] = field(default_factory=dict)
    behind: bool = True
    busy: bool = False


class JobEvents:
    def __init__(self, node: "Node") -> None:
        self.node = node
        self.readings: dict[str, Reading] = {}
        self.link = RedisLink(node.settings.redis_url, self.nothing)

    async def nothing(self, call: Any) -> None:
        """A new connection of this link needs no preparation."""

    def may_process(self) -> bool:
        """Events are processed at any time, also while nobody leads."""
        return True

    # Subscribing and leaving.

    def reading(self, job: Job) -> Reading:
        ids = {"jobId": job.id, "executionId": job.history_id}
        return Reading(job, self.node.names.channel("status", **ids), self.node.names.channel("logs", **ids))

    async def subscribe(self, job: Job) -> None:
        """Becomes the consumer of both channels; the first look at them follows at once."""
        held = self.readings.get(job.id)
        if held is not None and held.job == job:
            return
        reading = self.reading(job)
        await asyncio.gather(*self.joins(reading))
        self.readings[job.id] = reading
        self.node.spawn(self.catch_up(reading))

    def joins(self, reading: Reading) -> list[Awaitable[None]]:
        call, join = self.node.store.call, self.node.transport.join
        return [join(call, reading.status, "status"), join(call, reading.logs, "logs")]

    def leave(self, job: Job) -> None:
        held = self.readings.get(job.id)
        if held is not None and held.job == job:
            del self.readings[job.id]

    async def leave_late(self, job: Job) -> None:
        """Leaves a job that has ended, after the time in which late logs may come."""
        await self.node.clock.sleep(self.node.settings.late_events)
        self.leave(job)

    # Reading.

    async def follow(self) -> None:
        """Processes what comes, for ever."""
        while True:
            try:
                await self.follow_once()
            except AWAY as error:
                if isinstance(error, hiredis.ReplyError):  # one channel is no stream: each job is looked at for itself
                    for each in self.readings.values():
                        each.behind = True
                await self.node.clock.sleep(RETRY_SECONDS)

    async def follow_once(self) -> None:
        for each in [each for each in self.readings.values() if each.behind and not each.busy]:
            await self.catch_up(each)  # an earlier attempt failed half-way
        current = {each.job.id: each for each in self.readings.values() if not each.behind}
        if not current:
            await self.node.clock.sleep(RETRY_SECONDS)
            return
        await self.process([each for each in await self.news(current.values()) if each.job.id in self.readings])

    async def news(self, readings: Iterable[Reading]) -> list[Reading]:
        """Waits for entries and returns the jobs that have some. Nothing is read for anybody by this."""
        of = {channel: each for each in readings for channel in (each.status, each.logs)}
        last = [of[channel].last.get(channel, "0-0") for channel in of]
        words = ("XREAD", "COUNT", 1, "BLOCK", int(self.node.settings.block * 1000), "STREAMS")
        found: dict[str, Reading] = {}
        for name, entries in await self.link.call(*words, *of, *last) or ():
            channel = name.decode()
            found[of[channel].job.id] = of[channel]
            of[channel].last[channel] = entries[-1][0].decode()
        return list(found.values())

    async def catch_up(self, reading: Reading) -> None:
        """First what a former owner has left, then what is new; from then on the job is followed like the others."""
        reading.busy = True
        try:
            await asyncio.gather(*(self.look_back(reading, channel) for channel in (reading.status, reading.logs)))
            await self.recover_pending(reading)
            await self.process([reading])
            reading.behind = False
        except AWAY:
            await self.node.clock.sleep(RETRY_SECONDS)
        finally:
            reading.busy = False

    async def look_back(self, reading: Reading, channel: str) -> None:
        """Notes where a channel ends now: what comes later is news, what is there is looked for."""
        newest = await self.node.store.call("XREVRANGE", channel, "+", "-", "COUNT", 1)
        reading.last[channel] = newest[0][0].decode() if newest else "0-0"

    async def recover_pending(self, reading: Reading) -> None:
        await self.process([reading], pending=True)

    async def process(self, readings: Sequence[Reading], *, pending: bool = False) -> None:
        """Reads and applies until there is nothing left. What fails half-way is left pending, to be caught up with."""
        while readings:
            while not self.may_process():
                await self.node.clock.sleep(RETRY_SECONDS)
            try:
                found = await self.read(readings, pending=pending)
                handled = [self.handle(*each, pending=pending) for each in found]
                full = await asyncio.gather(*handled, return_exceptions=True)
                if failed := next((each for each in full if isinstance(each, BaseException)), None):
                    raise failed
            except AWAY:
                for each in readings:
                    each.behind = True
                raise
            readings = [reading for (reading, _, _), more in zip(found, full, strict=True) if more]

    async def read(
        self, readings: Sequence[Reading], *, pending: bool = False, logs_only: bool = False
    ) -> list[tuple[Reading, list[Read], list[Read]]]:
        """Returns status reports and logs of each job; jobs that are another's now are dropped."""
        facts = {"owner": self.node.id, "count": self.node.settings.events_per_read, "pending": pending}
        jobs = [{**self.wanted(each), **({"status": ""} if logs_only else {})} for each in readings]
        answer = await self.node.store.run("read_events", {**facts, "jobs": jobs})
        found = []
        for reading, events in zip(readings, answer["found"], strict=True):
            if events:
                statuses, logs = ([(id_, data) for id_, data in each] for each in events)
                found.append((reading, statuses, logs))
                for channel, read in ((reading.status, statuses), (reading.logs, logs)):
                    if read and not pending:
                        reading.last[channel] = read[-1][0]
            else:
                self.node.registry.drop(reading.job)
        return found

    def wanted(self, reading: Reading) -> dict[str, Any]:
        """Returns what is read of a job: both of its channels. A channel without a name is left out."""
        job = reading.job
        return {"id": job.id, "epoch": job.epoch, "status": reading.status, "logs": reading.logs}

    async def handle(self, reading: Reading, statuses: list[Read], logs: list[Read], *, pending: bool) -> bool:
        """Applies what was read of one job; tells whether there may be more."""
        full = self.node.settings.events_per_read
        more = len(statuses) == full
        while logs:
            if not await self.apply_logs(reading, logs):
                return False
            found = await self.read([reading], pending=pending, logs_only=True) if len(logs) == full else []
            logs = found[0][2] if found else []
        if statuses:
            more = await self.apply_statuses(reading, statuses) and more
        return more

    # Applying.

    async def apply_logs(self, reading: Reading, logs: Sequence[Read]) -> bool:
        """Stores log messages; tells whether the job is still this node's."""
        entries = [{"id": id_, "log": self.log_line(id_, decode(data))} for id_, data in logs]
        answer = await self.apply("apply_logs", reading.job, reading.logs, entries)
        self.node.metrics.events.labels("logs").inc(len(entries))
        return bool(answer["owned"])

    def log_line(self, id_: str, message: Message | None) -> str:
        """Returns what is stored of a log message; nothing of one that can't be read."""
        if message is None:
            return ""
        level, text = message.one_of("level", LEVELS) or "Information", message.text("message")
        return encode({"entryId": id_, "by": self.node.id, "level": level, "message": text, "at": self.at()})

    async def apply_statuses(self, reading: Reading, statuses: Sequence[Read]) -> bool:
        """Writes status reports into the record; tells whether the job is still this node's, and unfinished."""
        entries = [self.status_entry(id_, decode(data)) for id_, data in statuses]
        answer = await self.apply("apply_statuses", reading.job, reading.status, entries)
        self.node.metrics.events.labels("status").inc(len(entries))
        if answer.get("finished"):
            self.finished(reading.job, answer["status"])
        return bool(answer["owned"]) and not answer.get("finished")

    def status_entry(self, id_: str, message: Message | None) -> dict[str, str]:
        message = message or Message({})
        words = {name: message.text(name) for name in ("result", "error", "completedAt")}
        return {"id": id_, "status": message.one_of("status", STATUSES), **words}

    async def apply(self, script: str, job: Job, stream: str, entries: Sequence[dict[str, str]]) -> Any:
        facts = {"jobId": job.id, "owner": self.node.id, "epoch": job.epoch, "stream": stream, "at": self.at()}
        answer = await self.node.store.run(script, {**facts, "entries": list(entries)})
        if not answer["owned"]:
            self.node.registry.drop(job)
        return answer

    def finished(self, job: Job, status: str) -> None:
        """A finished job is no longer owned: it is no load, and is handed to nobody."""
        if job.id in self.node.registry.jobs:
            self.node.events.emit("job.finished", jobId=job.id, status=status)
            self.node.registry.remove(job)
            self.node.publisher.settled(job)
            self.node.spawn(self.leave_late(job))

    def at(self) -> str:
        return self.node.clock.stamp()
