"""Violations of the outcome of a leave: failed fan-out, graceful stop, and the release of leader leases."""

import asyncio
from collections.abc import Mapping, Sequence

from holdfast.reference.lockd.leave import Leave
from holdfast.reference.lockd.mutants.table import violates
from holdfast.reference.lockd.slot import Slot
from holdfast.reference.lockd.store import StoreUnavailable
from holdfast.reference.lockd.wire import Refusal


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
        """Sends nothing."""


@violates("TC-LEAVE-09", 2, "Shutdown waits without limit for an unreachable peer.")
class WaitsForEver(Leave):
    async def graceful_stop(self) -> None:
        try:
            members = (await self.node.members.active()).endpoints
        except StoreUnavailable:
            return
        while await self.fan_out_stop(members):  # noqa: ASYNC110  # there is no event to wait for
            await asyncio.sleep(0.2)


@violates("TC-LEAVE-09", 3, "The shutdown fan-out stops at the first failing peer.")
class StopsAtFirst(Leave):
    async def fan_out_stop(self, members: Sequence[str]) -> dict[str, str]:
        for target in self.fan_out_targets(members):
            if why := await self.leave_at(target, 1):
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
        """Leaves the lease to its expiry."""
