"""Violations of the membership loop."""

from collections.abc import Sequence

from holdfast.reference.lockd.loop import Loop
from holdfast.reference.lockd.mutants.table import violates
from holdfast.reference.lockd.peers import Peers, Purpose


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
        """Writes nothing to the own store; the peers are announced to as ever."""


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
