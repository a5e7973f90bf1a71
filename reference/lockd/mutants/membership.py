"""Violations of the membership loop, of announce and of the list."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from holdfast.reference.lockd.http import Call, Http
from holdfast.reference.lockd.identity import Identity
from holdfast.reference.lockd.loop import Loop
from holdfast.reference.lockd.members import Active, Lease, Members
from holdfast.reference.lockd.mutants.registry import violates
from holdfast.reference.lockd.peers import Peers, Purpose
from holdfast.reference.lockd.wire import Refusal


@violates("TC-LOOP-01", 1, "The loop runs once per membership_ttl, so one lost call expires the member.")
class OncePerTtl(Loop):
    def interval(self) -> float:
        return self.node.members.ttl()


@violates("TC-LOOP-01", 2, "The own lease is written only at startup.")
class WrittenOnce(Loop):
    written = False

    async def announce_here(self) -> None:
        if not self.written:
            await super().announce_here()
        self.written = True


@violates("TC-LOOP-01", 3, "The node announces to peers only and is missing from its own list.")
class NotAtHome(Loop):
    async def announce_here(self) -> None:
        """Peers are told, the own store is not."""


@violates("TC-LOOP-02", 1, "Only the first member of the sorted list is called.")
class FirstOnly(Loop):
    def announce_targets(self, members: Sequence[str] | None, seeds: Sequence[str]) -> list[str]:
        return super().announce_targets(members, seeds)[:1]


@violates("TC-LOOP-02", 2, "The fan-out returns at the first error.")
class StopsAtError(Loop):
    async def fan_out(self, members: Sequence[str] | None, targets: Sequence[str]) -> None:  # noqa: ARG002  # the seam's form
        for target in targets:
            if await self.announce_to(target) is None:
                return


@violates("TC-LOOP-02", 3, "Fan-out uses the TC client bundle.")
class AnnouncesAsClient(Peers):
    def certificate_for(self, purpose: Purpose) -> str:
        return "client" if purpose == "membership" else super().certificate_for(purpose)


@violates("TC-LOOP-02", 4, "Fan-out goes only to the leader.")
class LeaderOnly(Loop):
    def announce_targets(self, members: Sequence[str] | None, seeds: Sequence[str]) -> list[str]:
        leader = self.node.election.current_leader()
        return [each for each in super().announce_targets(members, seeds) if leader and each == leader.leader_endpoint]


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


@violates("TC-CRASH-01", 1, "Peers delete a member at the first failed call to it.")
class DeletedAtFailure(Loop):
    def not_told(self, target: str, why: str) -> None:
        super().not_told(target, why)
        self.node.spawn(self.delete(target))

    async def delete(self, target: str) -> None:
        for lease in await self.node.members.leases():
            if lease.endpoint == target:
                await self.node.members.remove(lease.identity)


@violates("TC-CRASH-01", 2, "Entries of crashed nodes stay until removed by hand.", also=("TC-MEMBER-05", "TC-STEP-05"))
class StayForEver(Members):
    def is_active(self, lease: Lease, now: int) -> bool:  # noqa: ARG002  # the seam's form
        return True


@violates(
    "TC-CRASH-02", 1, "The identity includes a per-process id, so the lease from before the crash outlives the leave."
)
class PerProcess(Identity):
    def own(self) -> str:
        return f"{super().own()}-{os.getpid()}"


@violates(
    "TC-INV-02", 1, "An identity that left is remembered as gone, so its later announces are dropped on some backends."
)
class RememberedAsGone(Members):
    gone: set[str] = set()  # noqa: RUF012  # one node a process

    async def remove(self, identity: str) -> None:
        self.gone.add(identity)
        await super().remove(identity)

    async def announce(self, identity: str, endpoint: str) -> Lease:
        if identity in self.gone - {self.node.leader_id}:
            return self.renewed(None, identity, endpoint, self.node.clock.wall_ms())
        return await super().announce(identity, endpoint)


@violates("TC-INV-02", 2, "A peer serves its list from a cache that a leave or announce does not refresh.")
class CachedList(Members):
    cached: tuple[float, Active] | None = None

    async def active(self) -> Active:
        now = self.node.clock.monotonic()
        if self.cached is None or now - self.cached[0] > 4 * self.ttl():
            self.cached = (now, await super().active())
        return self.cached[1]
