"""Violations of conflicting starts of one channel (3.4)."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from holdfast.reference.intents.acceptance import Acceptance, Call
from holdfast.reference.intents.bus import Entry
from holdfast.reference.intents.idemkeys import IdemKeys
from holdfast.reference.intents.leases import Leases
from holdfast.reference.intents.mutants.reach import mapped
from holdfast.reference.intents.mutants.split import Split
from holdfast.reference.intents.mutants.table import violates, violation
from holdfast.reference.intents.orchestrator import RUNNING, Orchestrator
from holdfast.reference.intents.payloads import STOP, Intent
from holdfast.reference.intents.runs import Ending, Run
from holdfast.reference.intents.store import Move

if TYPE_CHECKING:
    from holdfast.reference.intents.worker import Worker


@violates("IN-BUSY-01", 1, "The profile is left out of the key and the second user silently gets session A.")
class WithoutProfile(IdemKeys):
    def material(self, intent: Intent) -> str:
        return super().material(replace(intent, profile=""))


@violates("IN-BUSY-01", 2, "The API looks at the lease and answers 409 although the flag is off.")
class LooksAtLease(Acceptance):
    async def record(self, call: Call) -> None:
        lease = self.node.leases.key_service(call.record())
        live = call.intent.type != STOP and not call.intent.vod
        if live and await self.node.link.call("GET", lease) and not await mapped(self.node, call):
            raise self.conflict()
        await super().record(call)


@violates("IN-BUSY-02", 1, "The newest start pushes the older one out.")
class NewestWins(Orchestrator):
    async def dedup_lease(self, run: Run) -> bool:
        for lease in self.service_leases(run):
            holder = (await self.node.link.call("GET", lease) or b"").decode()
            if holder and holder != run.id:
                await self.node.store.end(Move(holder, RUNNING, "STOPPED", "R_CANCELLED"), holder, [lease])
        return await super().dedup_lease(run)


@violates("IN-BUSY-02", 2, "B ends FAILED with a generic reason R_UNKNOWN.")
class Generic(Orchestrator):
    async def on_busy(self, run: Run) -> None:
        await self.end_new(run, Ending("FAILED", "R_UNKNOWN"), [])


class Patient(Orchestrator):
    """Waits for a held channel, for that many TTLs."""

    ttls = 0.0

    async def dedup_lease(self, run: Run) -> bool:
        end = self.node.clock.now() + self.ttls * self.node.settings.lease_ttl
        for lease in self.service_leases(run):
            while not await self.node.leases.acquire(lease, run.id) and self.node.clock.now() < end:
                await self.node.clock.sleep(0.1)
        return await super().dedup_lease(run)


@violates("IN-BUSY-02", 3, "B waits in NEW until the channel is free.")
class WaitsForEver(Patient):
    ttls = 1e6


@violates("IN-BUSY-03", 1, "The worker repeats the acquisition for two TTLs before it gives up.")
class WaitsTwoTtls(Patient):
    ttls = 2.0


@violates("IN-BUSY-03", 2, "The worker handles one session at a time and reads B's event only when A has ended.")
class OneAtATime(Orchestrator):
    def __init__(self, node: "Worker") -> None:
        super().__init__(node)
        self.turn = asyncio.Lock()

    async def handle(self, entry: Entry) -> None:
        async with self.turn:
            await super().handle(entry)


violation(
    "IN-BUSY-04",
    1,
    "Acquire is an unconditional SET.",
    lua={"acquire_lease": "write('SET', facts.lease, facts.owner, 'PX', lease_life(facts))\nreturn {taken = 1}"},
)


@violates("IN-BUSY-04", 2, "A common cleanup deletes lease:service:R without comparing the owner, so C runs beside A.")
class CommonCleanup(Orchestrator):
    async def on_busy(self, run: Run) -> None:
        await super().on_busy(run)
        await self.node.link.call("DEL", *self.service_leases(run))


@violates("IN-BUSY-05", 1, "The event of a rejected start is not acknowledged and B starts once A has ended.")
class Queued(Orchestrator):
    async def on_busy(self, run: Run) -> None:
        await super().on_busy(run)
        self.node.spawn(self.once_free(run))

    async def once_free(self, run: Run) -> None:
        while await self.node.link.call("EXISTS", *self.service_leases(run)):
            await self.node.clock.sleep(0.1)
        await self.node.store.move(Move(run.id, ("FAILED",), "NEW"))
        await self.handle_start(run.entry)


@violates(
    "IN-BUSY-05",
    2,
    "A redelivered start event of an ended session takes the channel's lease again and nobody frees it.",
)
class EndedTakesLease(Orchestrator):
    async def handle_start(self, entry: Entry) -> None:
        session = await self.load(entry.session_id)
        if session is not None and session["state"] in ("FAILED", "STOPPED"):
            await self.node.leases.acquire(self.node.leases.key_service(session), entry.session_id)
        await super().handle_start(entry)


@violates("IN-BUSY-06", 1, "Both are rejected because each sees the other's half-taken leases.")
class BothRejected(Orchestrator):
    async def dedup_lease(self, run: Run) -> bool:
        half = f"half:{run.session['serviceRef'] or run.id}"
        await self.node.link.call("SADD", half, run.id)
        await self.node.link.call("PEXPIRE", half, 100)
        await asyncio.sleep(0.05)
        if await self.node.link.call("SCARD", half) > 1:
            await self.on_busy(run)
            return False
        return await super().dedup_lease(run)


@violates("IN-BUSY-06", 2, "Acquisition is a GET followed by a SET, so both run.")
class GetThenSet(Split):
    split: ClassVar[tuple[str, ...]] = ("acquire_lease",)
    gap = 0.02


@violates("IN-BUSY-07", 1, "The target is left out of the key and the second channel gets the first one's session.")
class WithoutTarget(IdemKeys):
    def target(self, intent: Intent) -> str:
        return super().target(intent) if intent.vod else ""


@violates("IN-BUSY-07", 2, "One dedup lease for all channels.")
class OneForAll(Leases):
    def key_service(self, session: Mapping[str, str]) -> str:  # noqa: ARG002  # that is the violation
        return "lease:service:all"
