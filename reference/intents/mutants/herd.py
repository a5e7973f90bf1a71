"""Violations of parallel identical starts (5.1)."""

import asyncio
import secrets
from collections.abc import Mapping, Sequence

from holdfast.reference.intents.acceptance import Acceptance, Call
from holdfast.reference.intents.idemkeys import IdemKeys
from holdfast.reference.intents.leases import Leases
from holdfast.reference.intents.mutants.reach import note
from holdfast.reference.intents.mutants.split import Split
from holdfast.reference.intents.mutants.table import violates, violation
from holdfast.reference.intents.orchestrator import Orchestrator
from holdfast.reference.intents.runs import Run
from holdfast.reference.intents.store import Accepted, Record, Store, Stored


class Counting(Acceptance):
    """Counts the starts under way."""

    under_way = 0

    async def persist(self, call: Call) -> Accepted:
        self.under_way += 1
        try:
            return await super().persist(call)
        finally:
            self.under_way -= 1


@violates("IN-HERD-01", 1, "A collision on the key surfaces as 409 or 500.")
class Collision(Acceptance):
    under_way: frozenset[str] = frozenset()

    async def persist(self, call: Call) -> Accepted:
        key, _ = self.keys_of(call)
        if key in self.under_way:
            raise self.conflict()
        self.under_way |= {key}
        try:
            return await super().persist(call)
        finally:
            self.under_way -= {key}


@violates("IN-HERD-01", 2, "Look-up and insert are separate: both miss, both insert.")
class BothMiss(Split):
    gap = 0.02


@violates("IN-HERD-02", 1, "Two sessions briefly take two slots before one is dropped.")
class TwoSlots(Orchestrator):
    async def tuner_lease(self, run: Run) -> bool:
        held = await super().tuner_lease(run)
        for lease in map(self.node.leases.key_tuner, self.slots() if held and not run.vod else ()):
            if await self.node.leases.acquire(lease, run.id) == 1:
                await asyncio.sleep(0.1)
                await self.node.leases.release(lease, run.id)
        return held


@violates("IN-HERD-02", 2, "Losers store a record and publish first, and delete the record later.")
class LosersToo(Acceptance):
    async def record(self, call: Call) -> None:
        await super().record(call)
        if call.outcome and not call.outcome.made:
            await note(self.node, call, "NEW")
            await self.node.store.publish(self.start_event(call))
            self.node.spawn(self.forget(call.session_id))

    async def forget(self, session_id: str) -> None:
        await asyncio.sleep(1)
        await self.node.link.call("DEL", f"session:{session_id}")


@violates("IN-HERD-03", 1, "A rate or pool limit answers part of the herd with 429 or 503.")
class Pool(Counting):
    async def persist(self, call: Call) -> Accepted:
        if self.under_way >= 10:
            raise self.node.http.unavailable()
        return await super().persist(call)


@violates("IN-HERD-04", 1, "A mutex inside the process instead of an atomic store operation.")
class ProcessMutex(Split):
    mutex = True
    gap = 0.02


@violates("IN-HERD-04", 2, "A salt or a map per process, so each replica makes its own session.")
class Salted(IdemKeys):
    def load_secrets(self) -> list[bytes]:
        salt = secrets.token_bytes(8)
        return [secret + salt for secret in super().load_secrets()]


@violates("IN-HERD-05", 1, "The service lease key contains the profile, so several profiles run at once.")
class LeasePerProfile(Leases):
    def key_service(self, session: Mapping[str, str]) -> str:
        return f"{super().key_service(session)}:{session['profileID']}"


violation(
    "IN-HERD-05",
    2,
    "A channel keeps one mapping only, that of its latest start, so starts that take turns between profiles "
    "make ever new sessions.",
    lua={
        "store_mapping": """
local latest = 'latest:' .. facts.session.serviceRef .. facts.session.recordingId
local before = redis.call('GET', latest)
if before then
  write('DEL', mapping_key(before))
end
write('SET', latest, facts.session.idemKey, 'PX', whole(limits.idemTtlMs))
write('SET', mapping_key(facts.session.idemKey), facts.session.sessionId, 'PX', whole(limits.idemTtlMs))"""
    },
)


@violates(
    "IN-HERD-06",
    1,
    "Requests are serialised behind one lock held over two store calls each, so the last answers come after "
    "admission_max.",
)
class Serialised(Store):
    def __init__(self, node: Stored) -> None:
        super().__init__(node)
        self._turn = asyncio.Lock()

    async def accept(self, candidates: Sequence[str], session: Record, event: Record) -> Accepted:
        async with self._turn:
            await self.node.link.call("PING")
            return await super().accept(candidates, session, event)


violation(
    "IN-HERD-06",
    2,
    "A store timeout shorter than the latency turns part of the herd into 503.",
    lambda s: {"store_timeout": s.store_timeout / 100},  # the least latency is 50 ms
)
