"""Violations of announce and of the active list."""

from collections.abc import Iterable, Mapping
from typing import Any

from holdfast.reference.lockd.http import Call, Http
from holdfast.reference.lockd.members import Lease, Members
from holdfast.reference.lockd.mutants.table import violates
from holdfast.reference.lockd.wire import Refusal


@violates("TC-MEMBER-01", 1, "200 is answered without storing the lease.")
class NotStored(Members):
    async def announce(self, identity: str, endpoint: str) -> Lease:
        if identity != self.node.leader_id:
            return self.renewed(None, identity, endpoint, self.node.clock.wall_ms())
        return await super().announce(identity, endpoint)


@violates("TC-MEMBER-01", 2, "A missing self_endpoint is replaced by the remote address.")
class RemoteAddress(Http):
    def announced_endpoint(self, call: Call) -> str:
        try:
            return super().announced_endpoint(call)
        except Refusal as refusal:
            if refusal.code != "missing_self_endpoint":
                raise
            return "https://127.0.0.1"


@violates("TC-MEMBER-02", 1, "Any non-empty string is stored.")
class AnyText(Members):
    def normalize_endpoint(self, text: str) -> str | None:
        return super().normalize_endpoint(text) or text.rstrip("/")


@violates("TC-MEMBER-03", 1, "The lease lasts one leader TTL.")
class OneTtl(Members):
    def renewed(self, old: Lease | None, identity: str, endpoint: str, now: int) -> Lease:  # noqa: ARG002  # the seam's form
        return Lease(identity, endpoint, now, now + round(self.node.settings.leader_ttl * 1000))


@violates("TC-MEMBER-03", 2, "A live lease is left as it is, so the member vanishes at the first expiry.")
class LeftAsItIs(Members):
    def renewed(self, old: Lease | None, identity: str, endpoint: str, now: int) -> Lease:
        mine = identity == self.node.leader_id
        return old if old and self.is_active(old, now) and not mine else super().renewed(old, identity, endpoint, now)


@violates("TC-MEMBER-04", 1, "Endpoints are stored and shown verbatim, with the slash.")
class Verbatim(Members):
    def normalize_endpoint(self, text: str) -> str | None:
        return text.strip() if super().normalize_endpoint(text) else None


@violates("TC-MEMBER-04", 2, "The list has one entry per lease.")
class EntryPerLease(Members):
    def listed(self, leases: Iterable[Lease]) -> tuple[str, ...]:
        return tuple(sorted(lease.endpoint for lease in leases))


@violates("TC-MEMBER-04", 3, "Insertion order is kept.")
class AsInserted(Members):
    order: dict[str, int] = {}  # noqa: RUF012  # one node a process

    async def announce(self, identity: str, endpoint: str) -> Lease:
        self.order.setdefault(endpoint, len(self.order))
        return await super().announce(identity, endpoint)

    def listed(self, leases: Iterable[Lease]) -> tuple[str, ...]:
        return tuple(sorted({lease.endpoint for lease in leases}, key=lambda each: self.order.get(each, 0)))


@violates("TC-MEMBER-04", 4, "An empty list is returned as null, or entries as objects.")
class NullForEmpty(Http):
    async def members(self, call: Call) -> Mapping[str, Any]:
        body = dict(await super().members(call))
        return {**body, "endpoints": body["endpoints"] or None}


@violates("TC-MEMBER-05", 1, "Expired leases are removed only by a periodic sweep.")
class SweptNowAndThen(Members):
    swept = 0

    def is_active(self, lease: Lease, now: int) -> bool:
        if now - self.swept > self.ttl() * 2000:
            self.swept = now
        return lease.expires_at_unix > self.swept


@violates("TC-MEMBER-06", 1, "The second announce of an endpoint deletes the first identity's lease.")
class OneOwner(Members):
    async def announce(self, identity: str, endpoint: str) -> Lease:
        for lease in await self.leases():
            if lease.endpoint == endpoint and lease.identity != identity:
                await self.remove(lease.identity)
        return await super().announce(identity, endpoint)


@violates("TC-MEMBER-06", 2, "The first leave removes the entry for both.")
class BothLeave(Members):
    async def remove(self, identity: str) -> None:
        leases = await self.leases()
        gone = {lease.endpoint for lease in leases if lease.identity == identity}
        for lease in leases:
            if lease.endpoint in gone:
                await super().remove(lease.identity)
