"""Violations of periodic registration: every server, at every member, for as long as it runs."""

from collections.abc import Sequence

from holdfast.reference.lockd.mutants.table import violates
from holdfast.reference.lockd.peers import Peers, Purpose
from holdfast.reference.lockd.rmloop import RmLoop


@violates("TC-RM-01", 1, "Only the leader or the local node is called.")
class LocalOnly(RmLoop):
    def register_targets(self, members: Sequence[str] | None, seeds: Sequence[str]) -> Sequence[str]:
        me = self.node.settings.self_endpoint
        return [each for each in super().register_targets(members, seeds) if each == me]


@violates("TC-RM-01", 2, "Registration happens once at startup.")
class Once(RmLoop):
    def next_due(self, started: float, *, failed: bool) -> float:
        return super().next_due(started, failed=failed) if failed else float("inf")


@violates("TC-RM-01", 3, "One failed registration ends the loop.")
class EndsAtFailure(RmLoop):
    def next_due(self, started: float, *, failed: bool) -> float:
        return float("inf") if failed else super().next_due(started, failed=failed)


@violates("TC-RM-01", 4, "The TC client certificate is used.")
class RegistersAsClient(Peers):
    def certificate_for(self, purpose: Purpose) -> str:
        return "client" if purpose == "registry" else super().certificate_for(purpose)


@violates("TC-RM-02", 1, "With an empty list nothing is registered.")
class NothingWhenEmpty(RmLoop):
    def register_targets(self, members: Sequence[str] | None, seeds: Sequence[str]) -> Sequence[str]:
        return seeds if members is None else members


@violates("TC-RM-02", 2, "When the list cannot be loaded the registration round is skipped.")
class SkippedUnread(RmLoop):
    def register_targets(self, members: Sequence[str] | None, seeds: Sequence[str]) -> Sequence[str]:
        return () if members is None else super().register_targets(members, seeds)
