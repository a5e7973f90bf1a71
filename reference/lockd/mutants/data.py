"""Violations of the data model."""

import asyncio
import hashlib
from collections.abc import Sequence
from functools import partial
from typing import Any

from aiohttp import web

from holdfast.reference.lockd.election import Election
from holdfast.reference.lockd.http import Http
from holdfast.reference.lockd.ids import uuid7
from holdfast.reference.lockd.members import PREFIX, Lease, Members, read_lease
from holdfast.reference.lockd.mutants.table import violates, violation
from holdfast.reference.lockd.registry import KEY, Registry
from holdfast.reference.lockd.slot import Held
from holdfast.reference.lockd.store import NAMESPACE, Island
from holdfast.reference.lockd.wire import Refusal, answer


def _instead(made: Any, _: Any) -> Any:
    return made


@violates("TC-DATA-01", 1, "A second endpoint for a hash replaces the first.")
class OnePerHash(Registry):
    def with_change(self, endpoints: Sequence[str], verb: str, endpoint: str) -> list[str]:
        return [endpoint] if verb == "register" else super().with_change(endpoints, verb, endpoint)


@violates("TC-DATA-01", 2, "All leases are kept in one list object, so concurrent announces lose entries.")
class OneListObject(Members):
    async def announce(self, identity: str, endpoint: str) -> Lease:
        stored = await self.node.island.read(NAMESPACE, PREFIX) or {}
        await asyncio.sleep(0.02)
        lease = self.renewed(None, identity, endpoint, self.node.clock.wall_ms())
        stored[identity] = self.payload(lease)
        await self.node.island.change(NAMESPACE, PREFIX, lambda _: stored)
        return lease

    async def remove(self, identity: str) -> None:
        def without(stored: Any) -> Any:
            return {name: lease for name, lease in (stored or {}).items() if name != identity}

        await self.node.island.change(NAMESPACE, PREFIX, without)

    async def leases(self) -> list[Lease]:
        stored = (await self.node.island.read(NAMESPACE, PREFIX) or {}).values()
        found = [lease for each in stored if (lease := read_lease(each)) is not None]
        return [lease for lease in found if self.is_active(lease, self.node.clock.wall_ms())]


@violates("TC-DATA-01", 3, "The lease object is keyed by endpoint instead of identity.", also=("TC-LEAVE-01",))
class KeyedByEndpoint(Members):
    def key(self, identity: str, endpoint: str) -> str:
        return PREFIX + (endpoint or identity)


@violates("TC-DATA-01", 4, "The stored lease lacks identity.")
class NamelessLease(Members):
    def payload(self, lease: Lease) -> dict[str, Any]:
        return {name: value for name, value in super().payload(lease).items() if name != "identity"}


@violates("TC-DATA-01", 5, "The registry is stored as one object per backend hash instead of tc-rm-members.")
class ObjectPerHash(Registry):
    async def write(self, edit: Any, backend: str) -> None:
        await self.node.island.change(self.namespace, f"{KEY}/{backend}", edit)

    async def load(self) -> dict[str, Any]:
        stored = await self.node.island.scan(self.namespace, f"{KEY}/")
        backends = [backend for each in stored for backend in each["backends"]]
        newest = max((each["updated_at_unix"] for each in backends), default=0)
        return {"backends": backends, "updated_at_unix": newest} if backends else {}


@violates("TC-DATA-02", 1, "leader_id is a hash of the endpoint even with mTLS on.")
class HashedLeader(Election):
    @property
    def identity(self) -> str:
        return hashlib.sha256(self.me.encode()).hexdigest()


@violates("TC-DATA-03", 1, "Term and leader are written to the backend and reloaded at start.")
class PersistentTerm(Election):
    async def refresh(self) -> None:
        kept = await self.node.island.read(NAMESPACE, "leader") or 0
        if kept > self.slot.held.term:
            self.slot.held = Held(term=kept)
        await self.node.island.change(NAMESPACE, "leader", lambda _: self.slot.held.term or None)
        await super().refresh()


@violates("TC-DATA-03", 2, "A restarted node starts an election at once and bumps the term.", also=("TC-PEER-02",))
class ElectsAtOnce(Election):
    bumped = False

    async def step(self) -> float:
        if not self.bumped:
            self.bumped = True
            self.slot.held = Held(term=self.slot.held.term)
            await self.refresh()
            return await self.run_for(self.slot.held.term + 1, self.peers or (self.me,))
        return await super().step()


@violates("TC-DATA-04", 1, "Refusals have plain-text bodies.")
class PlainText(Http):
    def refused(self, refusal: Refusal) -> web.Response:
        return web.Response(text=refusal.code, status=refusal.status)


@violates("TC-DATA-04", 2, "Times on /v1/tc/* are sent in seconds.")
class InSeconds(Http):
    async def route(self, request: web.BaseRequest) -> web.Response:
        import json

        reply = await super().route(request)
        body = json.loads(reply.body) if isinstance(reply.body, bytes) and reply.body else None
        if not isinstance(body, dict) or not request.path.startswith("/v1/tc/"):
            return reply
        times = {name: body[name] // 1000 for name in body if name.endswith("_unix") or name == "expires_at"}
        return answer({**body, **times}, reply.status)


violation(
    "TC-DATA-05",
    1,
    "Leases and registry are kept in process memory and are gone after a restart.",
    lambda _: {"store": "mem://"},
)


@violates("TC-DATA-05", 2, "The store is flushed at boot.")
class FlushedAtBoot(Island):
    async def open(self) -> None:
        await super().open()
        for stored in await self.backend.scan(NAMESPACE, PREFIX):
            await self.change(NAMESPACE, PREFIX + stored["identity"], lambda _: None)
        await self.change(NAMESPACE, KEY, lambda _: None)


@violates("TC-DATA-05", 3, "Leases and registry are written under another namespace than .lockd.")
class OtherNamespace(Members):
    namespace = ".cluster"


@violates("TC-DATA-05", 4, "The stored lease lacks updated_at_unix.")
class Undated(Members):
    def payload(self, lease: Lease) -> dict[str, Any]:
        return {name: value for name, value in super().payload(lease).items() if name != "updated_at_unix"}


@violates("TC-DATA-05", 5, "Leases read back at boot get a fresh expiry.")
class FreshAtBoot(Island):
    async def open(self) -> None:
        await super().open()
        for stored in await self.backend.scan(NAMESPACE, PREFIX):
            stored["expires_at_unix"] += stored["expires_at_unix"] - stored["updated_at_unix"]
            await self.change(NAMESPACE, PREFIX + stored["identity"], partial(_instead, stored))


@violates(
    "TC-DATA-06", 1, "Each process keeps its own copy of the leases, so B lists X only after X has announced to B."
)
class OwnCopy(Members):
    own: dict[str, Lease] = {}  # noqa: RUF012  # one node a process

    async def announce(self, identity: str, endpoint: str) -> Lease:
        self.own[identity] = await super().announce(identity, endpoint)
        return self.own[identity]

    async def remove(self, identity: str) -> None:
        self.own.pop(identity, None)
        await super().remove(identity)

    async def leases(self) -> list[Lease]:
        now = self.node.clock.wall_ms()
        return [lease for lease in self.own.values() if self.is_active(lease, now)]


@violates("TC-DATA-06", 2, "Each process draws its own backend hash, so A and B stand under two hashes.")
class OwnHash(Island):
    async def draw_hash(self) -> str:
        return uuid7()


@violates(
    "TC-DATA-06",
    3,
    "The registry object is read, changed and written back without a compare, so registers at the same moment lose "
    "entries.",
)
class ReadThenWrite(Registry):
    async def write(self, edit: Any, backend: str) -> None:  # noqa: ARG002  # the seam's form
        made = edit(await self.node.island.read(self.namespace, KEY))
        await asyncio.sleep(0.02)
        await self.node.island.change(self.namespace, KEY, lambda _: made)
