"""Violations of leave and of the graceful stop."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.reference.lockd.http import Call, Http
from holdfast.reference.lockd.leave import Leave
from holdfast.reference.lockd.loop import Loop
from holdfast.reference.lockd.mutants.registry import violates
from holdfast.reference.lockd.peers import Peers, Purpose
from holdfast.reference.lockd.slot import Slot
from holdfast.reference.lockd.store import StoreUnavailable
from holdfast.reference.lockd.wire import Refusal

if TYPE_CHECKING:
    from holdfast.reference.lockd.node import Node


@violates("TC-LEAVE-01", 1, "200 is answered but the lease only lapses at its expiry.")
class LapsesLater(Leave):
    async def remove_other(self, identity: str) -> None:
        """The lease runs out some day."""


@violates("TC-LEAVE-01", 2, "A received leave clears the receiver's own lease.")
class ClearsReceiver(Leave):
    async def remove_other(self, identity: str) -> None:
        await super().remove_other(identity)
        await self.node.members.remove(self.node.leader_id)


@violates("TC-LEAVE-01", 3, "The leave body may name the identity to remove.")
class NamedInBody(Http):
    async def leave(self, call: Call) -> Mapping[str, Any]:
        named = call.body.get("identity") or call.body.get("node_id")
        if isinstance(named, str):
            await self.node.members.remove(named)
        return await super().leave(call)


@violates("TC-LEAVE-01", 4, "Leave accepts an endpoint and deletes whatever lease advertises it.")
class ByEndpoint(Http):
    async def leave(self, call: Call) -> Mapping[str, Any]:
        named = call.body.get("endpoint") or call.body.get("self_endpoint")
        for lease in await self.node.members.leases():
            if lease.endpoint == named:
                await self.node.members.remove(lease.identity)
        return await super().leave(call)


@violates("TC-LEAVE-02", 1, "A fans out with its own certificate, so B and C delete A instead of X.")
class SentOn(Leave):
    async def remove_other(self, identity: str) -> None:
        await super().remove_other(identity)
        members = (await self.node.members.active()).endpoints
        await self.fan_out_leave(self.fan_out_targets(members), 1)


@violates("TC-LEAVE-03", 1, "The next tick re-announces the node.")
class AnnouncedAgain(Loop):
    async def tick(self) -> None:
        if self.node.leave.paused:
            self.node.leave.paused = False
        await super().tick()


@violates("TC-LEAVE-03", 2, "The local announce is skipped but the fan-out still runs.")
class StillFansOut(Loop):
    async def present(self) -> Sequence[str] | None:
        if self.node.leave.paused:
            return (await self.node.members.active()).endpoints
        return await super().present()

    def silent(self) -> bool:
        return False


@violates("TC-LEAVE-04", 1, "The announce is stored once but the loop stays paused, so the node expires.")
class StaysPaused(Leave):
    def resume(self) -> None:
        self.node.election.wake.set()


@violates("TC-LEAVE-04", 2, "The pause is stored and survives a restart.")
class PauseStored(Leave):
    """Beside the fault file, which has a folder of its own for each node, so that a memory store shows it too."""

    def __init__(self, node: "Node") -> None:
        super().__init__(node)
        self.marker = Path(node.settings.fault_file or f"{node.settings.bundle}.fault").with_suffix(".paused")
        self.paused = self.marker.exists()

    def pause(self) -> None:
        super().pause()
        self.marker.parent.mkdir(parents=True, exist_ok=True)
        self.marker.touch()


@violates("TC-LEAVE-04", 3, "Election stays off until restart.")
class ElectionStaysOff(Leave):
    def resume(self) -> None:
        super().resume()
        self.node.election.peer_set = lambda *_: None  # type: ignore[method-assign]  # the violation


@violates("TC-LEAVE-05", 1, "Only the local lease is deleted; peers keep A until expiry.", also=("TC-LEAVE-06",))
class LocalOnly(Leave):
    def fan_out_targets(self, members: Sequence[str]) -> list[str]:  # noqa: ARG002  # the seam's form
        return []


@violates("TC-LEAVE-05", 2, "Fan-out carries the TC client certificate and names the identity in the body.")
class LeavesAsClient(Peers):
    def certificate_for(self, purpose: Purpose) -> str:
        leaving = purpose == "membership" and self.node.leave.leaving
        return "client" if leaving else super().certificate_for(purpose)


@violates("TC-LEAVE-05", 3, "Fan-out requests carry no marker.")
class Unmarked(Leave):
    def guard_headers(self) -> dict[str, str]:
        return {}


@violates("TC-LEAVE-05", 4, "The guard header is ignored, so a fanned-out leave is fanned out again.")
class GuardIgnored(Leave):
    def is_guarded(self, headers: Mapping[str, str]) -> bool:  # noqa: ARG002  # the seam's form
        return False


@violates("TC-LEAVE-06", 1, "Fan-out targets are join list plus membership, so a dead seed blocks every leave.")
class SeedsToo(Leave):
    def fan_out_targets(self, members: Sequence[str]) -> list[str]:
        return super().fan_out_targets(sorted({*members, *self.node.settings.join}))


@violates("TC-LEAVE-07", 1, "Fan-out failures are logged and 200 is answered.")
class FailuresLogged(Leave):
    async def fan_out_leave(self, targets: Sequence[str], attempts: int) -> dict[str, str]:
        await super().fan_out_leave(targets, attempts)
        return {}


@violates("TC-LEAVE-07", 2, "The node stays paused after the rejected leave and silently expires.")
class PausedByFailure(Leave):
    def on_leave_failed(self, failed: Mapping[str, str]) -> Refusal:
        self.pause()
        return super().on_leave_failed(failed)


@violates("TC-LEAVE-07", 3, "The failed attempt leaves a flag behind that rejects every later leave.")
class FlagLeftBehind(Leave):
    rejected: Refusal | None = None

    async def leave_everywhere(self) -> None:
        if self.rejected:
            raise self.rejected
        await super().leave_everywhere()

    def on_leave_failed(self, failed: Mapping[str, str]) -> Refusal:
        self.rejected = super().on_leave_failed(failed)
        return self.rejected


@violates(
    "TC-LEAVE-07",
    4,
    "A peer without a lease for the caller answers 404 or 500, so a leave that half succeeded can never be retried.",
)
class UnknownLeaves(Leave):
    async def remove_other(self, identity: str) -> None:
        if all(lease.identity != identity for lease in await self.node.members.leases()):
            raise Refusal(404, "not_found")
        await super().remove_other(identity)


@violates("TC-LEAVE-08", 1, "The leader releases its leases before the fan-out has succeeded.")
class ReleasesFirst(Leave):
    async def leave_everywhere(self) -> None:
        await self.release_as_leader()
        await super().leave_everywhere()


@violates("TC-LEAVE-09", 1, "SIGTERM just closes the listener; A stays listed until expiry.", also=("TC-LEAVE-10",))
class JustStops(Leave):
    async def graceful_stop(self) -> None:
        """Nobody is told."""


@violates("TC-LEAVE-09", 2, "Shutdown waits without limit for an unreachable peer.")
class WaitsForEver(Leave):
    async def graceful_stop(self) -> None:
        try:
            members = (await self.node.members.active()).endpoints
        except StoreUnavailable:
            return
        while await self.tell_all_stopping(members):  # noqa: ASYNC110  # there is no event to wait for
            await asyncio.sleep(0.2)


@violates("TC-LEAVE-09", 3, "The shutdown fan-out stops at the first failing peer.")
class StopsAtFirst(Leave):
    async def tell_all_stopping(self, members: Sequence[str]) -> dict[str, str]:
        for target in self.fan_out_targets(members):
            if why := await self.tell(target, 1):
                return {target: why}
        return {}


@violates("TC-LEAVE-10", 1, "On API leave the leader only stops renewing.")
class OnlyStopsRenewing(Leave):
    async def go(self) -> None:
        await self.remove_own()
        self.node.election.leading = None


@violates("TC-LEAVE-10", 2, "On SIGTERM the election loop is cancelled without a release.")
class StopsWithoutRelease(Leave):
    async def release_as_leader(self) -> None:
        if not self.node.stopping.is_set():
            await super().release_as_leader()


@violates("TC-LEAVE-11", 1, "Only the term is compared.")
class AnyLeader(Slot):
    def check_release(self, leader_id: str, term: int) -> None:  # noqa: ARG002  # the seam's form
        super().check_release(self.held.leader_id, term)


@violates("TC-LEAVE-11", 2, "Only the leader_id is compared.")
class AnyTerm(Slot):
    def check_release(self, leader_id: str, term: int) -> None:  # noqa: ARG002  # the seam's form
        super().check_release(leader_id, self.held.term)


@violates("TC-LEAVE-11", 3, "Release answers 200 but keeps the lease until expiry.")
class KeptUntilExpiry(Slot):
    def free(self) -> None:
        """The lease runs out some day."""
