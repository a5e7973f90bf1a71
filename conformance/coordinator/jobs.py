"""Jobs as a check needs them to begin with: offered, pending, scheduled, running, owned by a node.

`inject` offers ownership without a dispatch: the harness writes the assignment, and no leader is needed. `enqueue`,
`schedule` and `cancel` are the descriptor's hooks and go through the leader. `running`, `owned` and `at_least` only
arrange: what does not come leaves the row under test undecided, and names the row that judges it.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from holdfast.check.finding import ArrangementFailed
from holdfast.check.hooks import Hooks
from holdfast.check.timeline import Moment
from holdfast.conformance.coordinator import messages
from holdfast.conformance.coordinator.base import Base, of_job
from holdfast.conformance.coordinator.beats import Beat, Beats
from holdfast.conformance.coordinator.bus import Entry, post
from holdfast.conformance.coordinator.groups import Groups
from holdfast.conformance.coordinator.messages import Job, new_id
from holdfast.conformance.coordinator.wire import ASSIGNED, DISPATCH
from holdfast.conformance.coordinator.worker import Worker

# How often more jobs are offered until a node owns enough of them.
_TRIES = 10


@dataclass(frozen=True)
class Crowd:
    """Running jobs on several nodes, and the heartbeat of the one that was to own enough of them."""

    jobs: list[Job]
    beat: Beat

    @property
    def count(self) -> int:
        """How many that node owns."""
        return self.beat.job_count or 0


class Jobs:
    """Gives a cluster jobs."""

    def __init__(self, base: Base, beats: Beats, groups: Groups, worker: Worker) -> None:
        self._base = base
        self._beats = beats
        self._groups = groups
        self._worker = worker

    # --- offers

    async def inject(self, count: int = 1, *, jobs: Iterable[Job] = ()) -> list[Job]:
        """Offers so many fresh jobs, or these, in one step (MULTI); returns them."""
        made = list(jobs) or [Job() for _ in range(count)]
        await self._base.bus.publish_all([post(ASSIGNED, messages.assigned(job)) for job in made])
        return made

    async def inject_one(self) -> Job:
        return (await self.inject())[0]

    async def inject_at(self, count: int, rate: float) -> tuple[list[Job], Moment]:
        """Offers fresh jobs one after the other, so many a second; returns them, and when the last one was."""
        began, made = self._base.T.now(), list[Job]()
        for number in range(count):
            await self._base.T.sleep_until(began, number / rate, "the next offer")
            made += await self.inject()
        return made, self._base.T.now()

    # --- through the leader

    async def enqueue(
        self, count: int = 1, *, queue: str = "", due: Moment | None = None, times_out: float = 0.0
    ) -> list[Job]:
        """Gives the cluster so many pending jobs of one queue, a new one unless it is given; returns them.

        Their history ids are not known yet (`dispatched` tells). Without `due` they are due now; `times_out` is their
        own timeout in seconds, 0 for none.
        """
        due_ms, queue = await self._ms(due), queue or self.new_queue()
        made = [Job(queue=queue, history_id="") for _ in range(count)]
        hooks = await self._hooks()
        for job in made:
            await hooks.stimulus(
                "enqueue", job_id=job.id, queue=job.queue, due_ms=due_ms, timeout_ms=round(times_out * 1000)
            )
        return made

    @asynccontextmanager
    async def steadily(self, gap: float) -> AsyncIterator[list[Job]]:
        """Enqueues a job every `gap` seconds during the block, all on one queue of the check's own.

        Gives the list to which they are added; it is complete after the block.
        """
        over, given, queue = asyncio.Event(), list[Job](), self.new_queue()

        async def enqueue_on() -> None:
            began = self._base.T.now()
            while not over.is_set():
                given.extend(await self.enqueue(queue=queue))
                left = began.hi + len(given) * gap - self._base.T.now().hi
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(over.wait(), max(left, 0.0))

        enqueueing = self._base.beside(enqueue_on())
        try:
            yield given
        finally:
            over.set()
        await enqueueing

    async def schedule(self, period: float, *, first: Moment | None = None, queue: str = "") -> str:
        """Adds a schedule with this period, first due then (now, if nothing is given); returns its queue."""
        queue = queue or self.new_queue()
        hooks, first_ms = await self._hooks(), await self._ms(first)
        await hooks.stimulus(
            "schedule", schedule_id=new_id(), queue=queue, period_ms=round(period * 1000), first_ms=first_ms
        )
        return queue

    async def cancel(self, job: Job) -> Moment:
        return (await (await self._hooks()).stimulus("cancel", job_id=job.id)).moment

    async def dispatched(self, job: Job, bound: str, *, since: Moment, owner: str = "") -> tuple[Job, Entry]:
        """Waits for the dispatch entry of a job; returns the job with the history id that it names, and the entry.

        The time is judged in a check of the row `owner`, or where none is given.
        """
        what = f"a dispatch of {job.id}"
        if not owner or self._base.judges(owner):
            entry = await self._base.entry_in_time(
                DISPATCH, of_job(job.id), bound=bound, since=since, what=what, queue=job.queue
            )
        else:
            with self._base.context.arranging(owner):
                give_up = self._base.never(bound)
                entry = await self._base.entry(
                    DISPATCH, of_job(job.id), give_up=give_up, since=since, what=what, queue=job.queue
                )
        return Job(job.id, entry.message.history_id, job.queue), entry

    async def all_dispatched(self, jobs: Sequence[Job], bound: str, *, since: Moment, owner: str = "") -> list[Entry]:
        """Waits until each of these jobs of one queue has a dispatch entry; returns all entries of that queue.

        The time is judged in a check of the row `owner`, or where none is given. That each has one only is for the
        check to say.
        """
        queue, wanted = jobs[0].queue, {job.id for job in jobs}

        async def look() -> bool:
            return wanted <= {each.message.job_id for each in await self._base.bus.entries(DISPATCH, queue=queue)}

        what = f"a dispatch of each of {len(wanted)} jobs"
        if not owner or self._base.judges(owner):
            await self._base.comes(look, bound, since=since, what=what)
        else:
            with self._base.context.arranging(owner):
                await self._base.T.until(look, give_up=self._base.never(bound), since=since, what=what)
        return await self._base.bus.entries(DISPATCH, queue=queue)

    def new_queue(self) -> str:
        """Returns the name of a queue that no other check uses."""
        return f"q-{new_id()}"

    async def _hooks(self) -> Hooks:
        return (await self._base.context.get(Hooks)).on(self._base.deployment)

    async def _ms(self, moment: Moment | None) -> int:
        clock = self._base.bus.clock
        await clock.compare()
        return clock.milliseconds(moment or self._base.T.now())

    # --- arranged

    async def running(self, count: int = 1) -> list[Job]:
        """Returns so many running jobs: injected, owned by whoever won them, and Running was processed."""
        jobs = await self.inject(count)
        moment = await self._worker.runs(*jobs)
        await self._groups.done(jobs, "ownership_latency", since=moment, owner="CO-CHAN-04")
        return jobs

    async def running_one(self) -> Job:
        return (await self.running())[0]

    async def owned(self, count: int = 1, *, running: bool = True) -> list[Job]:
        """Returns so many jobs that the only node owns, as its heartbeat shows; needs nothing but the wire."""
        (node,), since = self._live_nodes(), self._base.T.now()
        before = (await self._beats.last(node)).job_count or 0
        jobs = await self.inject(count)
        if running:
            await self._worker.runs(*jobs)
        with self._base.context.arranging("CO-BEAT-03"):
            await self._beats.add_up([node], before + count, "load_shown", since=since)
        return jobs

    async def at_least(self, node: str, count: int) -> "Crowd":
        """Injects running jobs until a heartbeat of the node, beside other real ones, counts at least so many.

        Needs nothing but the wire. Which of them are the node's, `of_node` knows.
        """
        jobs, seen = list[Job](), 0
        for _ in range(_TRIES):
            since = self._base.T.now()
            more = await self.inject(max(count - seen, 1) * len(self._live_nodes()))
            await self._worker.runs(*more)
            jobs += more
            settled = Moment(since.lo, since.hi + self._base.T.claim_latency)
            beat = await self._beats.next(node, since=settled)
            seen = beat.job_count or 0
            if seen >= count:
                return Crowd(jobs, beat)
        raise ArrangementFailed("CO-ASSIGN-03", f"{node} does not come to own {count} jobs, however many are offered")

    def _live_nodes(self) -> list[str]:
        return [name for name, node in self._base.deployment.nodes.items() if node.pid or node.spec.start is None]

    async def have_reader(
        self, jobs: Sequence[Job], bound: str, *, since: Moment, among: Iterable[str] = (), what: str = ""
    ) -> dict[str, str]:
        """Publishes a log for each job, as a new reader may show only once it was given something, and waits.

        Until each job has a reader, of these ids if any are given; judges the time, and returns reader(J) by
        the id of each job.
        """
        for job in jobs:
            await self._worker.logs(job)
        return await self._groups.has_reader(jobs, bound, since=since, among=among, what=what)

    async def of_node(self, node_id: str, jobs: Sequence[Job]) -> list[Job]:
        """Returns those of the jobs that this node reads. The jobs have had an event each, as running jobs have."""
        readers = await self._groups.readers(jobs)
        return [job for job in jobs if readers[job.id] == node_id]

    async def by_reader(self, jobs: Sequence[Job]) -> dict[str, list[Job]]:
        """Returns the jobs by the id of the node that reads them."""
        readers = await self._groups.readers(jobs)
        return {node: [job for job in jobs if readers[job.id] == node] for node in set(readers.values())}
