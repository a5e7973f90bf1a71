"""Violations of the RM registry: its calls, replication and rollback."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.reference.lockd.http import Call, Http
from holdfast.reference.lockd.mutants.table import violates
from holdfast.reference.lockd.registry import UNHEARD, Registry
from holdfast.reference.lockd.wire import Refusal


@violates("TC-RM-03", 1, "200 is answered without storing.")
class NotStored(Registry):
    async def requested(self, verb: str, backend: str, endpoint: str, headers: Mapping[str, str]) -> dict[str, Any]:  # noqa: ARG002  # the seam's form
        now = self.node.clock.wall_ms()
        return {"backend_hash": backend, "endpoints": [endpoint], "updated_at_unix": now}


@violates("TC-RM-03", 2, "An entry is stored under an empty hash.")
class EmptyHash(Http):
    def pair(self, call: Call) -> tuple[str, str]:
        try:
            return super().pair(call)
        except Refusal as refusal:
            if refusal.code != "missing_backend_hash":
                raise
            return "", str(call.body.get("endpoint"))


@violates("TC-RM-03", 3, "A missing endpoint is replaced by the caller's address.")
class CallersAddress(Http):
    def pair(self, call: Call) -> tuple[str, str]:
        try:
            return super().pair(call)
        except Refusal as refusal:
            if refusal.code != "missing_endpoint":
                raise
            return str(call.body.get("backend_hash")), "https://127.0.0.1"


@violates("TC-RM-04", 1, "Replication is asynchronous, or goes to one peer.", also=("TC-RM-06", "TC-RM-07"))
class Asynchronous(Registry):
    async def replicate(self, targets: Sequence[str], verb: str, backend: str, endpoint: str) -> dict[str, str]:
        self.node.spawn(super().replicate(targets, verb, backend, endpoint))
        return {}


@violates("TC-RM-04", 2, "Unregister removes only the local entry.")
class LocalUnregister(Registry):
    async def replicate(self, targets: Sequence[str], verb: str, backend: str, endpoint: str) -> dict[str, str]:
        return await super().replicate(targets if verb == "register" else (), verb, backend, endpoint)


@violates("TC-RM-04", 3, "Targets are refreshed only once per loop tick, so a fresh member is missed.")
class OldTargets(Registry):
    read_at = float("-inf")
    known: list[str] = []  # noqa: RUF012  # replaced, never changed

    async def targets(self) -> list[str]:
        now = self.node.clock.monotonic()
        if now - self.read_at > self.node.loop.interval():
            self.read_at, self.known = now, await super().targets()
        return self.known


@violates("TC-RM-04", 4, "Targets include members that left, or the join list.")
class FormerToo(Registry):
    ever: frozenset[str] = frozenset()

    async def targets(self) -> list[str]:
        self.ever |= {*await super().targets()}
        return sorted(self.ever)


@violates("TC-RM-04", 5, "Peers are written first and the local store last.")
class LocalLast(Registry):
    async def change_everywhere(self, verb: str, backend: str, endpoint: str) -> None:
        targets = await self.targets()
        self.refuse_if(await self.preflight(targets))
        failed = await self.replicate(targets, verb, backend, endpoint)
        if failed:
            await self.undo_peers([each for each in targets if each not in failed], verb, backend, endpoint)
        self.refuse_if(failed)
        await self.apply(verb, backend, endpoint)


@violates("TC-RM-05", 1, "Peers are written to without a probe.")
class NoProbe(Registry):
    async def preflight(self, targets: Sequence[str]) -> dict[str, str]:  # noqa: ARG002  # the seam's form
        return {}


@violates("TC-RM-05", 2, "Unreachable peers are skipped and 200 is answered.", also=("TC-RM-09",))
class SkipsUnreachable(Registry):
    async def targets(self) -> list[str]:
        found = await super().targets()
        dead = await super().preflight(found)
        return [each for each in found if each not in dead]


@violates("TC-RM-05", 3, "Unregister does not probe.")
class UnregisterUnprobed(Registry):
    async def change_everywhere(self, verb: str, backend: str, endpoint: str) -> None:
        self.verb = verb
        await super().change_everywhere(verb, backend, endpoint)

    async def preflight(self, targets: Sequence[str]) -> dict[str, str]:
        return await super().preflight(targets) if self.verb == "register" else {}


@violates("TC-RM-06", 1, "The local write stays.", also=("TC-RM-07",))
class LocalStays(Registry):
    async def undo_local(self, verb: str, backend: str, endpoint: str) -> None:
        if verb == "unregister":
            await super().undo_local(verb, backend, endpoint)


@violates("TC-RM-06", 2, "The unregistered entry stays removed.", also=("TC-RM-07",))
class StaysRemoved(Registry):
    async def undo_local(self, verb: str, backend: str, endpoint: str) -> None:
        if verb == "register":
            await super().undo_local(verb, backend, endpoint)


@violates("TC-RM-06", 3, "The failure is reported as 500 or 503.", also=("TC-RM-05", "TC-RM-07", "TC-RM-09"))
class AsServerError(Registry):
    def refuse_if(self, failed: Mapping[str, str]) -> None:
        if failed:
            raise Refusal(503, "tc_rm_unavailable", "; ".join(failed))


@violates("TC-RM-07", 1, "After a failed register only the local store is rolled back; B and C keep E.")
class PeersKeep(Registry):
    async def undo_peers(self, reached: Sequence[str], verb: str, backend: str, endpoint: str) -> None:
        if verb == "unregister":
            await super().undo_peers(reached, verb, backend, endpoint)


@violates("TC-RM-07", 2, "After a failed unregister only the local store is restored; B and C lack E.")
class PeersLack(Registry):
    async def undo_peers(self, reached: Sequence[str], verb: str, backend: str, endpoint: str) -> None:
        if verb == "register":
            await super().undo_peers(reached, verb, backend, endpoint)


@violates("TC-RM-08", 1, "A repeated register adds a duplicate.")
class Duplicates(Registry):
    def edited(self, stored: Any, verb: str, backend: str, endpoint: str) -> tuple[Any, bool]:
        made, changed = super().edited(stored, verb, backend, endpoint)
        for each in made["backends"] if verb == "register" and not changed else ():
            if each["backend_hash"] == backend:
                each["endpoints"] = sorted([*each["endpoints"], endpoint])
        return made, changed


@violates("TC-RM-08", 2, "A repeated register moves updated_at_unix.")
class MovesTheTime(Registry):
    def edited(self, stored: Any, verb: str, backend: str, endpoint: str) -> tuple[Any, bool]:
        made, changed = super().edited(stored, verb, backend, endpoint)
        for each in made["backends"] if verb == "register" and not changed else ():
            if each["backend_hash"] == backend:
                each["updated_at_unix"] = self.node.clock.wall_ms()
        return made, changed


class TakesBack(Registry):
    """Undoes a failed call of one kind even when it had changed nothing."""

    kind = "register"

    def takes_back(self, verb: str, *, changed: bool) -> bool:
        return changed or verb == self.kind


@violates("TC-RM-08", 3, "A failed register is rolled back by unregistering unconditionally.")
class AlwaysUnregisters(TakesBack):
    kind = "register"


@violates("TC-RM-08", 4, "A failed unregister is rolled back by registering unconditionally.")
class AlwaysRegisters(TakesBack):
    kind = "unregister"


@violates("TC-RM-09", 1, "Dead members are ignored right away.", also=("TC-RM-05",))
class IgnoresTheDead(Registry):
    async def targets(self) -> list[str]:
        found = await super().targets()
        said = await asyncio.gather(*(self.probe(each) for each in found))
        return [each for each, why in zip(found, said, strict=True) if not why.startswith(UNHEARD)]


@violates("TC-RM-10", 1, "Replicated calls carry no marker, so peers replicate again.")
class Unmarked(Registry):
    def replica_headers(self) -> dict[str, str]:
        return {}


@violates("TC-RM-10", 2, "The replica header is ignored.")
class MarkerIgnored(Registry):
    def is_replica(self, headers: Mapping[str, str], verb: str) -> bool:  # noqa: ARG002  # the seam's form
        return False


@violates("TC-RM-10", 3, "Only register honours the header, unregister replicates again.")
class RegisterOnly(Registry):
    def is_replica(self, headers: Mapping[str, str], verb: str) -> bool:
        return verb == "register" and super().is_replica(headers, verb)
