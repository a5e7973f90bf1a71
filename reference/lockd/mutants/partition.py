"""Violations by a leader that a partition cuts off from its peers."""

from holdfast.reference.lockd.mutants.step import KeepsLeading, OwnVoteWill
from holdfast.reference.lockd.mutants.table import violates
from holdfast.reference.lockd.seen import Seen


@violates("TC-STEP-08", 1, "The isolated leader extends its own lease because its own vote still succeeds.")
class ExtendsItself(OwnVoteWill):
    pass


@violates("TC-STEP-08", 2, "After healing the old leader resumes renewing its old term.")
class RenewsOldTerm(KeepsLeading):
    def current_leader(self) -> Seen | None:
        silent = self.leading is not None and self.leading.expires <= self.clock.monotonic()
        return None if silent else super().current_leader()

    def must_give_way(self) -> bool:
        return False
