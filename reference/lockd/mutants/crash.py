"""Violations of crash and expiry."""

import os

from holdfast.reference.lockd.identity import Identity
from holdfast.reference.lockd.loop import Loop
from holdfast.reference.lockd.members import Lease, Members
from holdfast.reference.lockd.mutants.table import violates


@violates("TC-CRASH-01", 1, "Peers delete a member at the first failed call to it.")
class DeletedAtFailure(Loop):
    def announce_failed(self, target: str, why: str) -> None:
        super().announce_failed(target, why)
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
