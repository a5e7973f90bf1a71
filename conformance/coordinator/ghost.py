"""A ghost: a coordinator that the suite plays. It beats, may compete for handoffs, and ACKs as it is told.

Unless told otherwise it beats every heartbeat_interval, says status Active and the jobCount of the busiest node, so
that it is a live peer that attracts no jobs; it sees handoffs without taking them, and sends no ACK.

    async with cluster.ghost() as ghost:
        ghost.acks(everything)                    # each handoff as soon as its entry appears
        …
        await ghost.ack(job.id, to=node_id)       # or this one, now
        await ghost.compete(consumers=3)          # takes handoffs from the others, and swallows them

A ghost that is late itself would make the target look wrong, so each heartbeat is compared with its time: more than
half a heartbeat_interval of delay, and the end of the block is Inconclusive. A *silent* ghost is only an id that has
never beaten: `silent_id()`.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from redis.exceptions import RedisError

from holdfast.check.finding import Inconclusive
from holdfast.check.plain import in_words
from holdfast.check.timeline import Moment
from holdfast.conformance.coordinator import messages
from holdfast.conformance.coordinator.base import Base
from holdfast.conformance.coordinator.beats import Beats
from holdfast.conformance.coordinator.bus import Entry
from holdfast.conformance.coordinator.groups import Groups
from holdfast.conformance.coordinator.messages import Job, new_id
from holdfast.conformance.coordinator.wire import ACK, ACTIVE, BEAT, HANDOFF, decode, iso

# Seconds between two looks at the handoffs, and of one read in competition.
_LOOK, _BLOCK_MS = 0.01, 200

# Whether to acknowledge this handoff as soon as it is seen.
Policy = Callable[[Entry], bool]


def everything(_handoff: Entry) -> bool:
    """Accepts every handoff."""
    return True


def silent_id() -> str:
    """Returns the id of a ghost that has never beaten."""
    return f"ghost-{new_id()}"


@dataclass(frozen=True)
class Swallowed:
    """A handoff that a competing ghost took from the others and dropped."""

    entry_id: str
    job_id: str
    at: Moment


class Ghost:
    """One ghost; `swallowed` has what it took while it competed, `acked` when it acknowledged which job."""

    def __init__(self, base: Base, beats: Beats, groups: Groups) -> None:
        self.id = silent_id()
        self.swallowed: list[Swallowed] = []
        self.acked: dict[str, Moment] = {}
        # What its heartbeats say; None is the jobCount of the busiest node.
        self.job_count: int | None = None
        self.status = ACTIVE
        # How far off the timestamps in its heartbeats are.
        self.skew = 0.0
        self.beaten: list[Moment] = []
        self._base = base
        self._beats = beats
        self._groups = groups
        self._policy: Policy | None = None
        self._seen = 0
        self._late = 0.0
        self._beating: asyncio.Task[None] | None = None
        self._competing: list[asyncio.Task[None]] = []
        self._left = asyncio.Event()
        beats.ghosts.add(self.id)

    # --- heartbeats

    async def beat(self) -> Moment:
        """Beats once, now; returns when."""
        count = await self._beats.busiest() if self.job_count is None else self.job_count
        said = messages.beat(self.id, count, iso(await self._base.bus.now() + self.skew), status=self.status)
        self.beaten.append(await self._base.bus.publish(BEAT, said))
        return self.beaten[-1]

    async def live(self) -> Moment:
        """Begins to beat, at once and then every heartbeat_interval; returns when the first one was."""
        first = await self.beat()
        self._beating = self._base.beside(self._beat_on())
        return first

    async def _beat_on(self) -> None:
        period, due = self._base.T.heartbeat_interval, time.monotonic()
        while True:
            due += period
            await asyncio.sleep(due - time.monotonic())
            self._late = max(self._late, time.monotonic() - due)
            try:
                await self.beat()
            except (RedisError, OSError) as error:
                self._base.context.transcript.note(f"{self.id} could not beat: {in_words(error)}")

    async def fall_silent(self) -> Moment:
        """Beats no more; returns when its last heartbeat was."""
        await _ended(self._beating)
        self._beating = None
        return self.beaten[-1]

    # --- ACKs

    def acks(self, policy: Policy) -> None:
        """Acknowledges from now on each handoff that the policy accepts, as soon as its entry appears."""
        if self._policy is None:
            self._base.beside(self._ack_on())
        self._policy = policy

    async def _ack_on(self) -> None:
        while True:
            entries = await self._base.bus.entries(HANDOFF)
            for entry in entries[self._seen :]:
                if self._policy and self._policy(entry):
                    await self.answer(entry)
            self._seen = len(entries)
            await asyncio.sleep(_LOOK)

    async def answer(self, handoff: Entry) -> Moment:
        """Acknowledges a handoff to the node that waits for it."""
        said = handoff.message
        return await self.ack(said.job_id, to=said.text("ackTo") or said.text("fromNodeId") or await self._drains())

    async def ack(self, job_id: str, *, to: str, named: bool = True, at: str | None = None) -> Moment:
        """Sends an ACK for a job on the topic of the node `to`; with `named=False` one without newOwner."""
        moment = await self._base.bus.publish(ACK, messages.ack(job_id, self.id if named else None, at=at), nodeId=to)
        self.acked.setdefault(job_id, moment)
        return moment

    async def acked_all(self, jobs: Iterable[Job]) -> Moment:
        """Waits until it has acknowledged all of these jobs; returns when the last one was."""
        wanted = [job.id for job in jobs]

        async def look() -> bool:
            return all(job_id in self.acked for job_id in wanted)

        with self._base.context.arranging("CO-DRAIN-04"):
            give_up = self._base.never("first_offer")
            await self._base.T.until(look, give_up=give_up, what=f"{len(wanted)} handoffs for the ghost to acknowledge")
        return max((self.acked[job_id] for job_id in wanted), key=lambda each: each.hi)

    async def _drains(self) -> str:
        """Returns the one node that can have sent a handoff without a sender: that of a deployment of one."""
        return await self._base.id_of(self._base.nodes[0])

    # --- competing

    async def compete(self, consumers: int = 1, *, swallows: Policy = everything) -> None:
        """Joins the coordinators' group on the handoffs and swallows what it gets; other entries it leaves pending."""
        self._left.clear()
        group = await self._groups.the_one(HANDOFF)
        for number in range(consumers):
            name = f"{self.id}-{number}"
            await self._base.bus.ask("XGROUP", "CREATECONSUMER", group.queue, group.name, name)
            reads = asyncio.Event()
            work = self._swallow(group.queue, group.name, name, swallows, reads)
            self._competing.append(self._base.beside(work))
            await reads.wait()

    async def _swallow(self, queue: str, group: str, consumer: str, swallows: Policy, reads: asyncio.Event) -> None:
        """Takes entries one by one until it leaves; `reads` is set once it has read for the first time.

        It ends between two reads: one that is broken off may have been given an entry that nobody would know of.
        """
        redis = self._base.bus.redis
        while not self._left.is_set():
            block = _BLOCK_MS if reads.is_set() else None
            read: Any = await redis.xreadgroup(group, consumer, {queue: ">"}, count=1, block=block)
            reads.set()
            for _, entries in read or ():
                for id_, fields in entries:
                    at = Moment.now()
                    entry = Entry(HANDOFF, queue, id_, fields, decode(fields.get("data")), at)
                    if swallows(entry):
                        await redis.xack(queue, group, id_)
                        self.swallowed.append(Swallowed(id_, entry.message.job_id, at))
                        self._base.context.transcript.note(f"{consumer} swallows {entry.describe()}")

    async def leave(self) -> None:
        """Stops competing. What it had taken stays swallowed; it goes on to beat. Raises Inconclusive if it failed."""
        self._left.set()
        ended = await asyncio.gather(*self._competing, return_exceptions=True)
        self._competing.clear()
        if failed := next((each for each in ended if isinstance(each, Exception)), None):
            raise Inconclusive(f"{self.id}, a peer played by the suite, could not read: {in_words(failed)}")

    async def gone(self) -> None:
        """Stops competing and beating, as a node does that has ended."""
        await self.leave()
        await _ended(self._beating)

    def on_time(self) -> None:
        """Raises Inconclusive if its heartbeats were so late that a node may have taken it for dead."""
        if self._late > self._base.T.heartbeat_interval / 2:
            raise Inconclusive(f"{self.id}, a peer played by the suite, beat {self._late:.2f} s late")


@asynccontextmanager
async def playing(ghost: Ghost) -> AsyncIterator[Ghost]:
    """Lets the ghost live during the block. Raises Inconclusive at its end if the ghost was late itself."""
    await ghost.live()
    try:
        yield ghost
    finally:
        await ghost.gone()
        ghost.on_time()


async def _ended(task: "asyncio.Task[None] | None") -> None:
    if task:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
