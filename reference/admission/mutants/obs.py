"""Violations of the observability rows."""

from holdfast.reference.admission.mutants.registry import violates
from holdfast.reference.admission.promoter import Promoter
from holdfast.reference.admission.verdicts import Promoted


@violates("AD-OBS-06", 4, "A promoted attempt is counted as queued and again as success.")
class CountedTwice(Promoter):
    def announce(self, instance_id: str, promoted: Promoted) -> None:
        super().announce(instance_id, promoted)
        self.node.metrics.count_attempt("success")
