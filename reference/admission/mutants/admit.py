"""Violations of the atomic admission rows."""

from holdfast.reference.admission.mutants.registry import violates
from holdfast.reference.admission.mutants.split import Split


@violates("AD-ADMIT-03", 1, "Capacity is read and the session written in a second round trip.")
class ReadThenWrite(Split):
    split = ("decide",)
