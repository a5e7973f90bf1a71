"""Who reads a queue, as Redis tells: groups, consumers, what is pending, what nobody has been given yet.

The names of groups and consumers are open. On a competing queue the group is the one that is there; a consumer is the
node whose id its name contains. Where names say nothing, `known_consumers` may be filled by the tap (`deeds`).

**done(J)**: both streams of a job hold as many entries as their group has been given and has acknowledged. A group that
was created at the end of a stream has nothing left to read either, but has read nothing: it is not done.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from redis.exceptions import ResponseError

from holdfast.check.finding import Finding, NotObservable, expect
from holdfast.check.timeline import Moment
from holdfast.conformance.coordinator.base import Base
from holdfast.conformance.coordinator.messages import Job
from holdfast.conformance.coordinator.wire import LOGS, STATUS

JOB_QUEUES = (STATUS, LOGS)


@dataclass(frozen=True)
class Group:
    """One group of a queue. `entries_read` is None where it has read nothing yet, or, not `counted`, before Redis 7."""

    queue: str
    name: str
    pending: int
    last_delivered: str
    entries_read: int | None
    length: int
    undelivered: int
    counted: bool = True

    @property
    def done(self) -> bool:
        if self.length == 0:
            return True
        given = self.entries_read == self.length if self.counted else self.last_delivered != "0-0"
        return given and self.pending == 0 and self.undelivered == 0

    def describe(self) -> str:
        read = "?" if self.entries_read is None else str(self.entries_read)
        return (
            f"{self.queue}: {self.length} entries, group {self.name} has read {read}, "
            f"{self.pending} pending, {self.undelivered} undelivered"
        )


@dataclass(frozen=True)
class Consumer:
    """One consumer of a group. `quiet_for` are the seconds since it was last given something."""

    name: str
    pending: int
    quiet_for: float


class Groups:
    """The readers of one deployment's queues."""

    def __init__(self, base: Base) -> None:
        self._base = base
        self._bus = base.bus
        # Names of consumers that contain no id, with the id of the node that reads under them.
        self.known_consumers: dict[str, str] = {}

    # --- queues

    async def of(self, kind: str, **ids: str) -> list[Group]:
        """Returns the groups of a queue; [] where there is no such queue, or nobody has made one."""
        queue = self._base.names.channel(kind, **ids)
        try:
            found: Any = await self._bus.redis.xinfo_groups(queue)
            length = int(await self._bus.redis.xlen(queue))
        except ResponseError as refused:
            if "no such key" not in str(refused).lower():
                raise
            return []
        return [await self._group(queue, length, each) for each in found]

    async def _group(self, queue: str, length: int, said: Mapping[str, Any]) -> Group:
        last, read = str(said["last-delivered-id"]), said.get("entries-read")
        left: Any = said.get("lag")
        if left is None:
            after: Any = await self._bus.redis.xrange(queue, min=f"({last}")
            left = len(after)
        return Group(
            queue, str(said["name"]), int(said["pending"]), last, read, length, int(left), "entries-read" in said
        )

    async def the_one(self, kind: str, **ids: str) -> Group:
        """Returns the coordinators' group of a competing queue. That there is one group is judged by CO-CHAN-03."""

        async def look() -> Group | None:
            found = await self.of(kind, **ids)
            if len(found) > 1:
                names = ", ".join(each.name for each in found)
                raise Finding(["one group"], names, self._base.names.channel(kind, **ids))
            return found[0] if found else None

        with self._base.context.arranging("CO-CHAN-03"):
            what = f"a group on {self._base.names.channel(kind, **ids)}"
            group, _ = await self._base.T.until(look, give_up=self._base.never("claim_latency"), what=what)
        return group

    async def consumers(self, group: Group) -> list[Consumer]:
        found: Any = await self._bus.redis.xinfo_consumers(group.queue, group.name)
        return [Consumer(str(each["name"]), int(each["pending"]), _quiet_for(each)) for each in found]

    async def id_of(self, consumer: Consumer) -> str:
        """Returns the id of the node that reads under this name; "" where nothing tells it."""
        return self.known_consumers.get(consumer.name) or await self._base.named_in(consumer.name)

    async def deliver(self, group: Group, consumer: str, count: int = 1) -> list[str]:
        """Reads entries under a consumer's name without acknowledging them (dead reader); returns their ids.

        They are then pending there. Raises Finding if there were fewer.
        """
        words = ("XREADGROUP", "GROUP", group.name, consumer, "COUNT", count, "STREAMS", group.queue, ">")
        answer = await self._bus.ask(*map(str, words))
        ids = [str(id_) for id_, _ in (answer[0][1] if answer else ())]
        expect(len(ids), count, why=f"entries that {consumer} was given on {group.queue}")
        return ids

    async def consumer_of(self, group: Group, node_id: str) -> str:
        """Returns the name under which a node reads this group."""
        for each in await self.consumers(group):
            if await self.id_of(each) == node_id:
                return each.name
        raise NotObservable("[dialect] node_ids", f"no consumer of {group.queue} names {node_id}")

    # --- the queues of a job

    async def of_job(self, job: Job) -> list[Group]:
        return [group for kind in JOB_QUEUES for group in await self.of(kind, **job.ids)]

    async def undone(self, job: Job) -> str:
        """Says what is left to do with the entries of a job; "" once it is done."""
        for kind in JOB_QUEUES:
            groups = await self.of(kind, **job.ids)
            queue = self._base.names.channel(kind, **job.ids)
            if not groups and await self._bus.length(kind, **job.ids):
                return f"{queue} has no group"
            if open_ := [group for group in groups if not group.done]:
                return "; ".join(group.describe() for group in open_)
        return ""

    async def done(self, jobs: Iterable[Job], bound: str, *, since: Moment, owner: str = "", what: str = "") -> Moment:
        """Waits until all of these jobs are done, and judges the time; returns when.

        With `owner`, a row that the check does not verify, the time is not judged, and what does not come leaves the
        row under test undecided.
        """
        waiting = list(jobs)
        many = f"all entries of {len(waiting)} jobs" if len(waiting) > 1 else "all entries of the job"

        async def look() -> bool | None:
            while waiting and not await self.undone(waiting[0]):
                waiting.pop(0)
            return not waiting or None

        what = what or f"{many} read and acknowledged"
        if owner and not self._base.judges(owner):
            with self._base.context.arranging(owner):
                _, seen = await self._base.T.until(look, give_up=self._base.never(bound), since=since, what=what)
            return seen
        _, seen = await self._base.comes(look, bound, since=since, what=what)
        return seen

    async def ever_read(self, job: Job) -> set[str]:
        """Returns the ids of all nodes that are consumers of the job's queues; of others the consumer's name."""
        found = set[str]()
        for group in await self.of_job(job):
            for consumer in await self.consumers(group):
                found.add(await self.id_of(consumer) or consumer.name)
        return found

    async def reader(self, job: Job) -> str:
        """Returns the id of the node that reads the job now; "" if there is none yet.

        That is reader(J) of the catalogue. Of several consumers it is the one that was given something last, on either
        stream. So after a change of owner something is published first (`jobs.have_reader`). Where no owner has
        changed, `ever_read` says it exactly.
        """
        consumers = [each for group in await self.of_job(job) for each in await self.consumers(group)]
        if not consumers:
            return ""
        last = min(consumers, key=lambda each: each.quiet_for)
        return await self.id_of(last) or last.name

    async def readers(self, jobs: Iterable[Job]) -> dict[str, str]:
        """Returns reader(J) by the id of each job."""
        return {job.id: await self.reader(job) for job in jobs}

    async def has_reader(
        self, jobs: Iterable[Job], bound: str, *, since: Moment, among: Iterable[str] = (), what: str = ""
    ) -> dict[str, str]:
        """Waits until each job has a reader, of these ids if any are given; judges the time.

        Returns reader(J) by the id of each job.
        """
        waiting, legal, found = list(jobs), set(among), dict[str, str]()

        async def look() -> bool | None:
            while waiting:
                node = await self.reader(waiting[0])
                if not node or (legal and node not in legal):
                    return None
                found[waiting.pop(0).id] = node
            return True

        await self._base.comes(look, bound, since=since, what=what or "a reader of each job")
        return found


def _quiet_for(said: Mapping[str, Any]) -> float:
    """Returns for how long a consumer was given nothing. Before 7.2 Redis does not count reads in vain."""
    inactive = said.get("inactive")
    return float("inf") if inactive == -1 else float(said["idle"] if inactive is None else inactive) / 1000
