"""Violations of leave: who is removed, who hears of it, and the pause that follows."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.reference.lockd.http import Call, Http
from holdfast.reference.lockd.leave import Leave
from holdfast.reference.lockd.loop import Loop
from holdfast.reference.lockd.mutants.table import violates
from holdfast.reference.lockd.peers import Peers, Purpose

if TYPE_CHECKING:
    from holdfast.reference.lockd.node import Node


@violates("TC-LEAVE-01", 1, "200 is answered but the lease only lapses at its expiry.")
class LapsesLater(Leave):
    async def remove_other(self, identity: str) -> None:
        """Leaves the lease to its expiry."""


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
    """Keeps the pause in a file beside the fault file, so that the mutant works with a memory store too."""

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
