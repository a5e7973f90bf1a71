"""The worker that the suite plays: it publishes statuses and numbered logs, and knows what it has published.

What was published is the ground truth of every row about events: `published` has it by job. A log's text is its number
and nothing else, so that what the store has can be compared with it (`numbers`).
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from holdfast.check.timeline import Moment
from holdfast.conformance.coordinator import messages
from holdfast.conformance.coordinator.base import Base
from holdfast.conformance.coordinator.bus import Post, post
from holdfast.conformance.coordinator.messages import Job, new_id
from holdfast.conformance.coordinator.wire import COMPLETED, LOGS, RUNNING, STATUS, TERMINAL, WORKER_BEAT, iso


@dataclass
class Published:
    """What the suite has published for a job, in order: statuses, and numbers of logs."""

    statuses: list[str] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)

    @property
    def last_status(self) -> str:
        """The status that the record has once all is processed: the first terminal one, as that stays."""
        ended = next((each for each in self.statuses if each in TERMINAL), "")
        return ended or (self.statuses[-1] if self.statuses else "")


class Worker:
    """Runs jobs, as far as coordinators can tell."""

    def __init__(self, base: Base) -> None:
        self.id = f"worker-{new_id()}"
        self.published: dict[str, Published] = {}
        self._base = base
        self._bus = base.bus

    def of(self, job: Job) -> Published:
        return self.published.setdefault(job.id, Published())

    async def status(self, job: Job, *statuses: str, error: str | None = None) -> Moment:
        """Publishes statuses back to back, in one step; returns when the last one was."""
        return (await self._bus.publish_all([await self._status(job, each, error) for each in statuses]))[-1]

    async def runs(self, *jobs: Job) -> Moment:
        """Publishes Running for all of these jobs in one step; returns when the last one was."""
        return (await self._bus.publish_all([await self._status(job, RUNNING) for job in jobs]))[-1]

    async def completes(self, *jobs: Job) -> Moment:
        return (await self._bus.publish_all([await self._status(job, COMPLETED) for job in jobs]))[-1]

    async def _status(self, job: Job, status: str, error: str | None = None) -> Post:
        self.of(job).statuses.append(status)
        at = iso(await self._bus.now()) if status in TERMINAL else None
        return post(STATUS, messages.status(job, status, error=error, at=at), **job.ids)

    async def logs(self, job: Job, count: int = 1) -> Moment:
        """Publishes so many numbered logs in one step; the numbers go on from the last ones. Returns when."""
        return (await self._bus.publish_all([self._log(job) for _ in range(count)]))[-1]

    def _log(self, job: Job) -> Post:
        numbers = self.of(job).numbers
        numbers.append(len(numbers) + 1)
        return post(LOGS, messages.log(job, str(numbers[-1])), **job.ids)

    @asynccontextmanager
    async def flow(self, jobs: Sequence[Job], rate: float) -> AsyncIterator[None]:
        """Publishes numbered logs for each of these jobs during the block, so many a second for each job."""
        over = asyncio.Event()
        flowing = self._base.beside(self._flow(jobs, rate, over))
        try:
            yield
        finally:
            over.set()
        await flowing

    async def _flow(self, jobs: Sequence[Job], rate: float, over: asyncio.Event) -> None:
        """Publishes by the clock: what a pause of ours held back goes out at once afterwards."""
        loop = asyncio.get_running_loop()
        began, sent = loop.time(), 0
        while not over.is_set():
            due = int((loop.time() - began) * rate) + 1
            posts = [self._log(job) for _ in range(due - sent) for job in jobs]
            if posts:
                await self._bus.publish_all(posts)
            sent = max(due, sent)
            await asyncio.sleep(1 / rate)

    async def spread(self, job: Job, count: int, gap: float) -> Moment:
        """Publishes so many numbered logs with this time in between; returns when the last one was."""
        began = self._base.T.now()
        moment = began
        for number in range(count):
            await self._base.T.sleep_until(began, number * gap, "the next log")
            moment = await self.logs(job)
        return moment

    async def beat(self, worker_id: str = "") -> Moment:
        """Publishes one heartbeat of a worker."""
        at = iso(await self._bus.now())
        return await self._bus.publish(WORKER_BEAT, messages.worker_beat(worker_id or self.id, at))


def numbers(texts: Iterable[str]) -> list[int]:
    """Returns the numbers of stored logs in their order; texts that are none of ours are left out."""
    return [int(text) for text in texts if text.isdecimal()]


def first_occurrences(found: Iterable[int]) -> list[int]:
    """Returns each number once, in the order in which it came first."""
    return list(dict.fromkeys(found))
