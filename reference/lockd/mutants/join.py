"""Violations of the bootstrap rules."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from holdfast.reference.lockd.boot import Boot
from holdfast.reference.lockd.election import Election
from holdfast.reference.lockd.http import Call, Http
from holdfast.reference.lockd.loop import Loop
from holdfast.reference.lockd.mutants.table import violates
from holdfast.reference.lockd.peers import PeerFailed
from holdfast.reference.lockd.rmloop import RmLoop
from holdfast.reference.shared.settings import BadSetting

if TYPE_CHECKING:
    from holdfast.reference.lockd.node import Node


@violates("TC-JOIN-01", 1, "A node started with --join mounts no /v1/txn/* routes and answers 404 there.")
class NoTransactions(Http):
    def __init__(self, node: "Node") -> None:
        super().__init__(node)
        if node.settings.join:
            self.client_routes = {path: call for path, call in self.client_routes.items() if "/txn/" not in path}


@violates("TC-JOIN-01", 2, "A node announces itself but never registers as RM.", also=("TC-RM-01", "TC-RM-02"))
class NeverRegisters(RmLoop):
    def register_targets(self, members: Sequence[str] | None, seeds: Sequence[str]) -> Sequence[str]:  # noqa: ARG002  # the seam's form
        return ()


@violates("TC-JOIN-02", 1, "GET /v1/tc/cluster/list returns the union of leases and join endpoints.")
class SeedsListed(Http):
    async def members(self, call: Call) -> Mapping[str, Any]:
        body = dict(await super().members(call))
        return {**body, "endpoints": sorted({*body["endpoints"], *self.node.settings.join})}


@violates("TC-JOIN-02", 2, "Announce targets are always join list plus membership.")
class SeedsAlways(Loop):
    def announce_targets(self, members: Sequence[str] | None, seeds: Sequence[str]) -> list[str]:
        return sorted({*(members or ()), *seeds} - {self.me})


@violates(
    "TC-JOIN-02", 3, "Join endpoints are contacted at startup only, so a seed that comes up later is never found."
)
class SeedsOnce(Loop):
    asked = False

    def announce_targets(self, members: Sequence[str] | None, seeds: Sequence[str]) -> list[str]:
        asked, self.asked = self.asked, True
        return super().announce_targets(members, () if asked else seeds)


@violates("TC-JOIN-02", 4, "Once membership has existed the join endpoints are never tried again.")
class SeedsForgotten(Loop):
    met = False

    def announce_targets(self, members: Sequence[str] | None, seeds: Sequence[str]) -> list[str]:
        self.met = self.met or len(members or ()) > 1
        return super().announce_targets(members, () if self.met else seeds)


@violates("TC-JOIN-02", 5, "When the list cannot be loaded the tick announces to nobody.")
class SilentWithoutList(Loop):
    def announce_targets(self, members: Sequence[str] | None, seeds: Sequence[str]) -> list[str]:
        return [] if members is None else super().announce_targets(members, seeds)


@violates(
    "TC-JOIN-03", 1, "The joiner announces once at startup and never again, so it drops out after membership_ttl."
)
class AnnouncesOnce(Loop):
    announced = False

    async def fan_out(self, members: Sequence[str] | None, targets: Sequence[str]) -> None:
        if not self.announced:
            await super().fan_out(members, targets)
        self.announced = True


@violates(
    "TC-JOIN-03",
    2,
    "A node announces only to its own join endpoints, not to members that announced to it, so the joiner never learns "
    "of the target.",
    also=("TC-LOOP-02",),
)
class SeedsOnly(Loop):
    def announce_targets(self, members: Sequence[str] | None, seeds: Sequence[str]) -> list[str]:  # noqa: ARG002  # the seam's form
        return super().announce_targets((), seeds)


@violates("TC-JOIN-04", 1, "Endpoints in announce replies are thrown away, so B and C never learn of each other.")
class RepliesUnread(Loop):
    def further_targets(self, replies: Sequence[Sequence[str] | None]) -> set[str]:  # noqa: ARG002  # the seam's form
        return set()


@violates("TC-JOIN-05", 1, "Startup only opens a TCP connection (or calls /healthz) to prove reachability.")
class ConnectsOnly(Boot):
    async def join_once(self, targets: tuple[str, ...]) -> bool:
        for target in targets:
            url = urlsplit(target)
            try:
                _, writer = await asyncio.open_connection(url.hostname, url.port)
            except OSError:
                continue
            writer.close()
            return True
        return False


@violates("TC-JOIN-05", 2, "All join targets must accept, so one dead seed stops the start.")
class AllMustAccept(Boot):
    async def join_once(self, targets: tuple[str, ...]) -> bool:
        return all([await self.node.loop.announce_to(target) is not None for target in targets])


@violates("TC-JOIN-05", 3, "When every target fails the node logs a warning and runs alone.")
class RunsAlone(Boot):
    async def join(self) -> None:
        try:
            await super().join()
        except BadSetting as error:
            self.node.events.emit("log", level="warning", message=str(error))


@violates("TC-JOIN-05", 4, "Any HTTP answer counts as acceptance, even 403 or 503.")
class AnyAnswer(Boot):
    async def join_once(self, targets: tuple[str, ...]) -> bool:
        for target in targets:
            body = {"self_endpoint": self.node.settings.self_endpoint}
            try:
                await self.node.peers.call("membership", "POST", f"{target}/v1/tc/cluster/announce", body)
            except PeerFailed:
                continue
            return True
        return False


@violates(
    "TC-JOIN-06",
    1,
    "The own endpoint is dropped from the join list before the check, so the first node of a cluster cannot start.",
)
class SelfDoesNotCount(Boot):
    def must_join(self) -> bool:
        return bool(self.others())


@violates("TC-JOIN-06", 2, "Election waits for at least one peer.", also=("TC-ELECT-03",))
class WaitsForCompany(Election):
    async def seek(self, peers: tuple[str, ...]) -> float:
        return await super().seek(peers) if len(peers) > 1 else self.retry_after()


@violates("TC-JOIN-07", 1, "The loop ends the process when all join targets fail for a few ticks.")
class EndsWithoutSeeds(Loop):
    missed = 0

    async def fan_out(self, members: Sequence[str] | None, targets: Sequence[str]) -> None:  # noqa: ARG002  # the seam's form
        replies = [await self.announce_to(target) for target in targets]
        self.missed = 0 if not targets or any(reply is not None for reply in replies) else self.missed + 1
        if self.missed > 2:
            self.node.stopping.set()
