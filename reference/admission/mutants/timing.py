"""Violations of the 10 s rule."""

from holdfast.reference.admission.attempts import Attempts
from holdfast.reference.admission.mutants.registry import violates


@violates("AD-TIME-01", 1, "No deadline: the request waits until Redis answers.")
class NoDeadline(Attempts):
    def deadline_of(self, received: float) -> float:
        return received + 3600
