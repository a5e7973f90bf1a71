"""A node that was told to stop: its drain from SIGTERM to the end of its process, as wire and process show it.

    leaving = cluster.leave("a")                                # SIGTERM, now
    first = await leaving.offer(job)                            # its first handoff entry
    await leaving.exits("prompt_exit", since=ghost.acked[job.id])
    assert await leaving.offers(job) …                          # all of its handoff entries

Of a node that Holdfast did not start neither exit nor life can be seen: asking for them is not-observable.
"""

import asyncio
import time

from holdfast.check.finding import Finding, NotObservable, demand, expect
from holdfast.check.timeline import Moment
from holdfast.conformance.coordinator.base import Base
from holdfast.conformance.coordinator.bus import Entry
from holdfast.conformance.coordinator.messages import Job
from holdfast.conformance.coordinator.wire import ACK, HANDOFF

# Seconds between two looks at a process.
_LOOK = 0.02
# How often the hard limit a node may take to end before the suite stops waiting.
_PATIENCE = 2


class Leaving:
    """The drain of one node; `begun` is the moment of SIGTERM, `exited` that of its end (None until then)."""

    def __init__(self, base: Base, node: str) -> None:
        self.node = node
        self.begun = base.T.now()
        self.exited: Moment | None = None
        self.status: int | None = None
        self._base = base
        self._visible = base.deployment.nodes[node].pid is not None
        self._over = asyncio.Event()
        base.context.transcript.note(f"SIGTERM {node}")
        self._patience = _PATIENCE * (base.T.handoff_hard_timeout + base.T.exit_tolerance)
        base.beside(self._watch())

    async def _watch(self) -> None:
        ending = self._base.beside(self._base.deployment.nodes[self.node].term(self._patience))
        alive = time.monotonic()
        while not ending.done():
            alive = time.monotonic()
            await asyncio.wait([ending], timeout=_LOOK)
        self.status = ending.result()
        if self.status is not None and self._visible:
            self.exited = Moment(alive, time.monotonic())
            self._base.context.transcript.note(f"{self.node} ended with {self.status}")
        self._over.set()

    # --- the process

    def _must_be_seen(self) -> None:
        if not self._visible:
            raise NotObservable("[[node]] start", "the end of a process that others run is not seen")

    def alive(self, why: str) -> None:
        """Judges that the process still runs."""
        self._must_be_seen()
        gone = self.exited.hi - self.begun.lo if self.exited else 0.0
        demand(self.exited is None, f"{self.node} alive", f"it had ended {gone:.2f} s after SIGTERM", why)

    async def alive_at(self, since: Moment, seconds: float, why: str) -> None:
        """Waits until so many seconds after a moment and judges that the process still runs then."""
        await self._base.T.sleep_until(since, seconds, why)
        self.alive(why)

    async def end(self, give_up: float, *, since: Moment | None = None) -> Moment:
        """Waits for the end of the process; returns when it was. Raises Finding after `give_up` seconds."""
        self._must_be_seen()

        async def look() -> Moment | None:
            return self.exited

        start = since or self.begun
        moment, _ = await self._base.T.until(
            look, give_up=give_up, since=start, what=f"{self.node} to exit", every=_LOOK
        )
        return moment

    async def ends(self) -> Moment:
        """Waits for the end of the process for as long as any drain may take; the row CO-ACK-10 judges that."""
        with self._base.context.arranging("CO-ACK-10"):
            T = self._base.T
            return await self.end(T.handoff_hard_timeout + T.exit_tolerance)

    async def exits(self, bound: str, *, since: Moment, what: str = "") -> Moment:
        """Waits for the end of the process and judges its time against a bound of ours; returns when it was."""
        moment = await self.end(self._base.never(bound), since=since)
        self._base.T.at_most(bound, since=since, seen=moment, what=what or f"the exit of {self.node}")
        return moment

    async def exits_by(self, limit: str, *, since: Moment, tolerance: str = "tolerance") -> Moment:
        """Waits for the end of the process and judges it against a limit of the document; returns when it was."""
        allowed = getattr(self._base.T, limit) + getattr(self._base.T, tolerance)
        moment = await self.end(allowed * _PATIENCE, since=since)
        self._base.T.at_most(limit, since=since, seen=moment, tolerance=tolerance, what=f"the exit of {self.node}")
        return moment

    # --- its handoffs

    async def offers(self, job: Job | None = None, *, reason: str = "") -> list[Entry]:
        """Returns its handoff entries so far, of one job or of all, oldest first.

        An entry that names another sender is not its own. What the leader publishes of it later has another reason, so
        a check with a leader beside it says which `reason` it asks for.
        """
        names = await self._base.node_ids()
        return [
            each
            for each in await self._base.found(HANDOFF, since=self.begun)
            if names.get(each.message.text("fromNodeId"), self.node) == self.node
            and (job is None or each.message.job_id == job.id)
            and (not reason or each.message.reason == reason)
        ]

    async def offer(self, job: Job, number: int = 1) -> Entry:
        """Waits for its n-th handoff entry of a job; returns it. That it comes is judged by CO-DRAIN-04."""
        T = self._base.T

        async def look() -> Entry | None:
            found = await self.offers(job)
            return found[number - 1] if len(found) >= number else None

        give_up = self._base.never("first_offer") + (number - 1) * (T.handoff_ack_timeout + T.tolerance)
        with self._base.context.arranging("CO-DRAIN-04" if number == 1 else "CO-ACK-03"):
            entry, _ = await T.until(
                look, give_up=give_up, since=self.begun, what=f"handoff entry {number} of {job.id}"
            )
        return entry

    async def offered(self, *jobs: Job) -> list[Entry]:
        """Waits for the first handoff entry of each job; returns them in the order of the jobs."""
        return [await self.offer(job) for job in jobs]

    async def acks(self) -> list[Entry]:
        """Returns the ACKs on its topic so far."""
        return await self._base.found(ACK, since=self.begun, nodeId=await self._base.id_of(self.node))

    async def counted(self, job: Job, count: int, why: str, *, reason: str = "") -> list[Entry]:
        """Judges how many handoff entries of a job there are by now; returns them."""
        found = await self.offers(job, reason=reason)
        if len(found) != count:
            at = ", ".join(f"{each.at.lo - self.begun.hi:.2f} s" for each in found)
            raise Finding([f"{count} handoff entries of {job.id}"], f"{len(found)}, after {at or 'none'}", why)
        expect(len(found), count, why=why)
        return found
