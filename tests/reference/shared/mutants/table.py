"""The table of the small node's mutants."""

from holdfast.reference.shared.mutant_table import MutantTable
from tests.reference.shared import mutants
from tests.reference.shared.programs import Components, Settings

_violations = MutantTable(mutants, Components, Settings, support=frozenset({"table"}), example="XX-ONE-01/1")
violates, violation, exclude = _violations.violates, _violations.violation, _violations.exclude
all_mutants, excluded, apply = _violations.all_mutants, _violations.excluded, _violations.apply
