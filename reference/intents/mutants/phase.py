"""Violations of the migration flag (section 4)."""

import asyncio
import hashlib
import os
from collections.abc import Mapping

from aiohttp import web

from holdfast.reference.intents.acceptance import Acceptance, Call
from holdfast.reference.intents.http import Http
from holdfast.reference.intents.leases import ApiLeases
from holdfast.reference.intents.mutants.reach import mapped, note
from holdfast.reference.intents.mutants.table import violates, violation
from holdfast.reference.intents.problems import Refusal
from holdfast.reference.intents.store import Store
from holdfast.reference.shared.redislink import Call as Send

violation(
    "IN-PHASE-01",
    1,
    "The flag is parsed but ignored; the conflict is left to the worker.",
    lambda _: {"api_leases": False},
)
violation(
    "IN-PHASE-01",
    2,
    "Unset is treated as off.",
    lambda s: {"api_leases": s.api_leases and bool(os.environ.get("XG2G_V3_API_LEASES"))},
)


@violates("IN-PHASE-01", 3, "The API only looks whether the lease exists and does not take it.")
class OnlyLooks(Acceptance):
    async def dedup_lease(self, call: Call) -> None:
        if await self.node.link.call("GET", self.node.leases.key_service(call.record())):
            raise self.conflict()


@violates("IN-PHASE-02", 1, "The idempotency replay is evaluated first, so both get 202.")
class ReplayFirst(Acceptance):
    async def dedup_lease(self, call: Call) -> None:
        try:
            await super().dedup_lease(call)
        except Refusal:
            await asyncio.sleep(0.05)
            if not await mapped(self.node, call):
                raise


@violates("IN-PHASE-02", 2, "Concurrent repeats get 409 but sequential ones are replayed as 202.")
class LaterReplayed(Acceptance):
    async def dedup_lease(self, call: Call) -> None:
        if not await mapped(self.node, call):
            await super().dedup_lease(call)


violation(
    "IN-PHASE-03",
    1,
    "Re-entry succeeds but the expiry is left as it was.",
    lua={"take": "if redis.call('GET', lease) ~= owner then\n  write('SET', lease, owner, 'PX', life)\nend"},
)


@violates(
    "IN-PHASE-03",
    2,
    "API and worker build the key differently (one normalises the reference), so two service leases exist.",
)
class OtherName(ApiLeases):
    def key_service(self, session: Mapping[str, str]) -> str:
        return super().key_service({"serviceRef": session["serviceRef"].upper().rstrip(":")})


violation(
    "IN-PHASE-03",
    3,
    "The worker takes any existing lease for another's and rejects the session the API accepted.",
    lua={"is_mine": "return false"},
)


@violates("IN-PHASE-04", 1, "The API sets the lease without expiry.")
class WithoutExpiry(ApiLeases):
    async def acquire(self, lease: str, session_id: str) -> int:
        taken = await super().acquire(lease, session_id)
        await self.node.store.node.link.call("PERSIST", lease)
        return taken


@violates("IN-PHASE-04", 2, "The API renews the lease for as long as it lives.")
class KeepsIt(ApiLeases):
    async def acquire(self, lease: str, session_id: str) -> int:
        taken = await super().acquire(lease, session_id)
        self.kept = asyncio.create_task(self.keep(lease, session_id))
        return taken

    async def keep(self, lease: str, session_id: str) -> None:
        node = self.node.store.node
        while await node.link.call("GET", lease) == session_id.encode():
            await node.link.call("PEXPIRE", lease, int(node.settings.lease_ttl * 1000))
            await asyncio.sleep(node.settings.lease_ttl / 4)


violation(
    "IN-PHASE-04",
    3,
    "The API takes the lease for a third of lease_ttl only, so another start is accepted while the first "
    "still waits for a worker.",
    lua={"lease_life": "return whole(limits.leaseTtlMs / (facts.by == 'api' and 3 or 1))"},
)

# The API marks the lease as its own, and the worker leaves such a lease alone in one of its two ways out.
MARK = """
if facts.by == 'api' then
  write('SET', 'taken-by-api:' .. facts.lease, facts.owner, 'PX', whole(limits.sessionTtlMs))
end
return whole(limits.leaseTtlMs)"""
LEAVE = """
local session = load_session(owner)
local by_api = redis.call('GET', 'taken-by-api:' .. lease) == owner
if redis.call('GET', lease) ~= owner or (by_api and session and session.state == '{}') then
  return false
end
write('DEL', lease)
return true"""

violation(
    "IN-PHASE-05",
    1,
    "The lease taken by the API is not released on stop and blocks until the TTL.",
    lua={"lease_life": MARK, "release": LEAVE.format("READY")},
)
violation(
    "IN-PHASE-05",
    2,
    "The worker frees only what it acquired itself, so a no-tuner rejection leaves the API's lease behind.",
    lua={"lease_life": MARK, "release": LEAVE.format("STARTING")},
)


@violates("IN-PHASE-06", 1, "Key derivation or lease names differ by phase, so the flip orphans S.")
class KeyByPhase(Acceptance):
    def keys_of(self, call: Call) -> tuple[str, list[str]]:
        keys = [hashlib.sha256(f"{key}{self.phase1}".encode()).hexdigest() for key in super().keys_of(call)[1]]
        return keys[0], keys


@violates("IN-PHASE-06", 2, "On start-up with the flag off the API deletes the leases it took earlier.")
class CleanStart(Store):
    async def prepare(self, call: Send) -> None:
        await super().prepare(call)
        if hasattr(self.node, "acceptance") and not self.node.settings.phase1 and not self.node.link.connections:
            await self.run("flush_leases", {}, call)


violation("IN-PHASE-07", 1, "The removed flag still leads to 409.", lambda _: {"flag_removed": False})


@violates("IN-PHASE-08", 1, "The API also reserves a tuner slot.")
class TunerToo(Acceptance):
    async def dedup_lease(self, call: Call) -> None:
        await super().dedup_lease(call)
        await self.node.leases.acquire(self.node.leases.key_tuner(0), call.session_id)


@violates("IN-PHASE-08", 2, "The record is stored before the lease attempt and stays NEW after the 409.")
class RecordBeforeLease(Acceptance):
    async def dedup_lease(self, call: Call) -> None:
        await note(self.node, call, "NEW")
        await super().dedup_lease(call)


@violates("IN-PHASE-08", 3, "Bare 409 without code.")
class Bare(Http):
    def refused(self, refusal: Refusal, request: web.BaseRequest, request_id: str) -> web.Response:
        reply = super().refused(refusal, request, request_id)
        return web.Response(status=409) if reply.status == 409 else reply


@violates(
    "IN-PHASE-08", 4, "A replay after the lease ran out leaves a lease owned by an ID that never became a session."
)
class GhostLease(Acceptance):
    async def give_back(self, call: Call) -> None:
        if call.outcome is None:
            await super().give_back(call)


@violates(
    "IN-PHASE-08",
    5,
    "An intent that could not be published is 503 but keeps its lease, so the channel is 409 until the TTL.",
)
class KeptLease(Acceptance):
    async def give_back(self, call: Call) -> None:
        if call.outcome is not None:
            await super().give_back(call)
