"""Worker layer: sole lease owner (3.2). Consume intent -> acquire leases -> execute pipeline.

`handle_start` is the workflow of the document, with the compare-and-set of the state between its two leases: an event
that is delivered again re-enters the service lease, but only one handler may take the session from NEW. That comes
before the tuner lease, because a lower slot may be free by then. Whoever is refused there cleans nothing up: it would
free the leases of the handler that runs the session, since both have the same owner.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from holdfast.reference.intents.bus import Entry
from holdfast.reference.intents.polls import TERMINAL
from holdfast.reference.intents.runs import BUSY, CLIENT_STOP, NO_TUNER, STORE_AWAY, Ending, Run
from holdfast.reference.intents.store import AWAY, Move, Record

if TYPE_CHECKING:
    from holdfast.reference.intents.worker import Worker

Step = Callable[[Run], Awaitable[bool]]
RUNNING = ("STARTING", "READY")


class Orchestrator:
    def __init__(self, node: "Worker") -> None:
        self.node = node

    def receive(self, entry: Entry) -> None:
        """Handles an event beside all others: a session that runs keeps no other from its verdict."""
        self.node.spawn(self.handle(entry))

    async def handle(self, entry: Entry) -> None:
        """An event whose handling the store breaks off stays unacknowledged, and is delivered again."""
        with suppress(*AWAY):
            if entry.type == "session.start" and entry.session_id:
                await self.handle_start(entry)
            elif entry.type == "session.stop" and entry.session_id:
                await self.node.runner.look_at(entry.session_id)
            await self.node.bus.ack(entry)

    async def handle_start(self, entry: Entry) -> None:
        session = await self.load(entry.session_id)
        if session is None or not self.may_start(session):
            return
        run = Run(session, entry)
        if "stopRequestedAtMs" in session and session["state"] == "NEW":
            await self.end_new(run, CLIENT_STOP, self.service_leases(run))
            return
        await self.take_and_run(run)

    async def load(self, session_id: str) -> Record | None:
        return await self.node.store.session(session_id)

    def may_start(self, session: Record) -> bool:
        """Tells whether a start event may touch the lease: its session waits, or runs in this very process.

        A session that another process has taken is that process's, also when it was killed: re-entry would prolong
        the lease of a dead owner.
        """
        return session["state"] == "NEW" or (session["state"] in RUNNING and self.runs_here(session))

    def runs_here(self, session: Record) -> bool:
        return session.get("incarnation") == self.node.incarnation

    def lease_steps(self) -> Sequence[Step]:
        return (self.dedup_lease, self.take_session, self.tuner_lease)

    async def take_and_run(self, run: Run) -> None:
        try:
            for step in self.lease_steps():
                if not await step(run):
                    return
        except AWAY:
            if run.taken:
                await self.node.runner.finish(run, STORE_AWAY)
            raise
        await self.node.runner.execute(run)

    async def dedup_lease(self, run: Run) -> bool:
        """Dedup lease (step 1): re-entrant for the session that owns it."""
        for lease in self.service_leases(run):
            if not await self.node.leases.acquire(lease, run.id):
                await self.on_busy(run)
                return False
            run.leases.append(lease)
        return True

    def service_leases(self, run: Run) -> list[str]:
        """Returns the service lease of a live session; a recording takes none."""
        return [] if run.vod else [self.node.leases.key_service(run.session)]

    async def take_session(self, run: Run) -> bool:
        """Moves the session from NEW to STARTING, for this process."""
        fields = {"workerId": self.node.settings.node, "incarnation": self.node.incarnation}
        answer = await self.node.store.move(Move(run.id, ("NEW",), "STARTING"), fields)
        if answer["moved"]:
            self.node.runner.add(run)
            run.taken = True
            self.tell_state(run, answer, "STARTING", "R_NONE")
            return True
        await self.on_refused(run, answer.get("state"))
        return False

    async def on_refused(self, run: Run, state: str | None) -> None:
        """Gives the lease back if the session has ended meanwhile; else somebody runs it, with the same lease."""
        if state is None or state in TERMINAL:
            for lease in run.leases:
                await self.node.leases.release(lease, run.id)

    async def tuner_lease(self, run: Run) -> bool:
        """Tuner lease (step 2): the first slot that is free, in the configured order."""
        if run.vod:
            return True
        for slot in self.slots():
            lease = self.node.leases.key_tuner(slot)
            if await self.node.leases.acquire(lease, run.id):
                run.slot = slot
                run.leases.append(lease)
                return True
        await self.on_no_tuner(run)
        return False

    def slots(self) -> Sequence[int]:
        return self.node.settings.tuner_slots

    async def on_busy(self, run: Run) -> None:
        """Ends the session; the lease of the holder is not touched."""
        await self.end_new(run, BUSY, [])

    async def on_no_tuner(self, run: Run) -> None:
        """Ends the session and gives back the service lease that it had just taken."""
        self.node.metrics.rejected(NO_TUNER.reason, run.session["profileID"])
        await self.node.runner.finish(run, NO_TUNER)

    async def end_new(self, run: Run, ending: Ending, leases: Sequence[str]) -> None:
        """Ends a session that nobody has taken."""
        if ending is BUSY:
            self.node.metrics.rejected(ending.reason, run.session["profileID"])
        move = Move(run.id, ("NEW",), ending.state, ending.reason, ending.detail)
        owner = self.node.leases.owner_for(run.id)
        self.told_end(run, await self.node.store.end(move, owner, leases), ending)

    def told_end(self, run: Run, answer: Any, ending: Ending) -> None:
        """Logs the end of a session and the leases that went with it."""
        for lease in answer["released"]:
            self.node.leases.tell("lease.released", lease, run.id)
        if answer["moved"]:
            self.tell_state(run, answer, ending.state, ending.reason)

    def tell_state(self, run: Run, answer: Any, to: str, reason: str) -> None:
        self.node.events.emit("session.state", sessionId=run.id, **{"from": answer["from"]}, to=to, reason=reason)
