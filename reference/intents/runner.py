"""Runs sessions that have been taken: execute, maintain, clean up (3.2 steps 5 to 7).

Whatever ends a session sets `Run.ending`, once; `execute` waits for it and cleans up on every way out. Renewal begins
before the pipeline does, because a start may take longer than a lease lasts, and has ended before anything is released,
because a late renewal would bring the lease back.
"""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from holdfast.reference.intents.pipelines import PipelineFailed
from holdfast.reference.intents.runs import CLIENT_STOP, LEASE_LOST, NOT_STARTED, PROCESS_ENDED, SHUTDOWN, Ending, Run
from holdfast.reference.intents.store import AWAY, Move

if TYPE_CHECKING:
    from holdfast.reference.intents.worker import Worker

RETRY_SHARE = 0.05
"""After how much of the renewal period a renewal that the store did not answer is tried again."""


class Runner:
    def __init__(self, node: "Worker") -> None:
        self.node = node
        self.clock = node.clock
        self.runs: dict[str, Run] = {}
        self.draining = False
        self.idle = asyncio.Event()
        self.idle.set()

    def add(self, run: Run) -> None:
        """Counts a session among those that run here, from the moment it is taken."""
        self.runs[run.id] = run
        self.count()

    def remove(self, run: Run) -> None:
        self.runs.pop(run.id, None)
        self.count()

    def count(self) -> None:
        (self.idle.clear if self.runs else self.idle.set)()
        self.node.metrics.active.set(len(self.runs))
        self.node.metrics.tuners.set(sum(each.slot is not None for each in self.runs.values()))

    async def execute(self, run: Run) -> None:
        """Runs a session from its leases to its end."""
        renewal = asyncio.create_task(self.renewals(run))
        if self.draining:
            run.end(SHUTDOWN)
        try:
            await self.run_pipeline(run)
        finally:
            await self.cleanup(run, renewal)

    async def run_pipeline(self, run: Run) -> None:
        """Starts the pipeline, reports READY, and returns when the session is to end."""
        work = asyncio.create_task(self.pipeline(run))
        waited: set[asyncio.Future[Any]] = {work, run.ending}
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        work.cancel()
        with suppress(asyncio.CancelledError):
            await work

    async def pipeline(self, run: Run) -> None:
        """Goes with a pipeline from its start to its end by itself."""
        try:
            run.process = await self.node.pipelines.start(run.session)
            await self.node.pipelines.up(run.process)
        except (PipelineFailed, OSError, *AWAY):
            self.node.metrics.failed(NOT_STARTED.reason, run.session["profileID"])
            run.end(NOT_STARTED)
            return
        if await self.report_ready(run):
            await self.node.bus.ack(run.entry)
            await self.node.pipelines.ended(run.process)
            run.end(PROCESS_ENDED)

    async def report_ready(self, run: Run) -> bool:
        """Shows the session as READY; not any more if a stop was noted meanwhile."""
        fields = {} if run.slot is None else {"tunerSlot": str(run.slot)}
        try:
            answer = await self.node.store.move(Move(run.id, ("STARTING",), "READY"), fields)
        except AWAY:
            run.end(LEASE_LOST)
            return False
        if not answer["moved"]:
            run.end(CLIENT_STOP)
            return False
        self.node.orchestrator.tell_state(run, answer, "READY", "R_NONE")
        self.node.metrics.started(run.session["profileID"])
        return True

    # Maintain.

    async def renewals(self, run: Run) -> None:
        """Renews at every period. What the store has not confirmed for a whole TTL is lost, whatever it would say."""
        confirmed = self.clock.now()
        pause = self.period()
        while not run.ending.done():
            await self.clock.sleep(pause)
            try:
                if not await self.renew_once(run):
                    self.on_lost(run)
                    return
                confirmed, pause = self.clock.now(), self.period()
            except AWAY:
                pause = self.period() * RETRY_SHARE
                if self.clock.now() - confirmed >= self.node.settings.lease_ttl:
                    self.on_lost(run)
                    return

    def period(self) -> float:
        return self.node.settings.renew_every

    async def renew_once(self, run: Run) -> bool:
        """Extends what the session still owns; tells whether that is everything."""
        leases = self.renewed(run)
        async with asyncio.timeout(self.node.settings.store_timeout):
            lost = await self.node.store.renew(run.id, self.node.leases.owner_for(run.id), leases)
        for lease in leases:
            self.node.leases.tell("lease.lost" if lost is None or lease in lost else "lease.renewed", lease, run.id)
        return lost == []

    def renewed(self, run: Run) -> list[str]:
        """Returns the leases that are renewed: all that the session holds."""
        return run.leases

    def on_lost(self, run: Run) -> None:
        self.node.metrics.lost.inc()
        run.end(LEASE_LOST)

    async def watch(self) -> None:
        """Looks at the records of all sessions that run here: a stop event may have gone to another worker."""
        while True:
            await self.clock.sleep(self.node.settings.stop_poll)
            with suppress(*AWAY):
                await self.look_at(*self.runs)

    async def look_at(self, *session_ids: str) -> None:
        here = [each for each in session_ids if each in self.runs]
        stop, ended = await self.node.store.look_at(here) if here else ([], [])
        for session_id in {*stop, *ended} & self.runs.keys():
            self.on_stop(self.runs[session_id], CLIENT_STOP if session_id in stop else LEASE_LOST)

    def on_stop(self, run: Run, ending: Ending) -> None:
        run.end(ending)

    # Clean up.

    async def cleanup(self, run: Run, renewal: "asyncio.Task[None]") -> None:
        """Ends the renewal, then the pipeline, then the session with its leases."""
        await self.end_renewal(renewal)
        if run.process is not None:
            await self.node.pipelines.stop(run.session, run.process)
        await self.finish(run, run.ending.result() if run.ending.done() else SHUTDOWN)

    async def end_renewal(self, renewal: "asyncio.Task[None]") -> None:
        renewal.cancel()
        with suppress(asyncio.CancelledError):
            await renewal

    async def finish(self, run: Run, ending: Ending) -> None:
        """Releases the leases and ends the session. If the store stays away the leases run out, and a sweep ends it."""
        before = ("STARTING", "READY") if run.taken else ("NEW",)
        move = Move(run.id, before, ending.state, ending.reason, ending.detail)
        try:
            async with asyncio.timeout(self.node.settings.release_timeout):
                await self.end_in_store(run, move, ending)
        except TimeoutError:
            self.node.events.log("warning", "A session could not be ended in the store; its leases run out.")
        finally:
            self.remove(run)

    async def end_in_store(self, run: Run, move: Move, ending: Ending) -> None:
        while True:
            try:
                owner = self.node.leases.owner_for(run.id)
                answer = await self.node.store.end(move, owner, self.released(run, ending))
            except AWAY:
                await self.clock.sleep(self.node.settings.stop_poll)
            else:
                self.node.orchestrator.told_end(run, answer, ending)
                return

    def released(self, run: Run, ending: Ending) -> list[str]:  # noqa: ARG002  # every ending releases all; a seam
        return run.leases

    async def drain(self) -> None:
        """Ends all sessions, for a worker that is told to stop; gives up on those that do not end in time."""
        self.draining = True
        for run in self.runs.values():
            run.end(SHUTDOWN)
        with suppress(TimeoutError):
            await asyncio.wait_for(self.idle.wait(), self.node.settings.drain_timeout)
