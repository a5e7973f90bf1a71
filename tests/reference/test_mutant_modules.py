"""Where the mutants of a spec are: a mutant is in the module that is named like a check module of its row.

`conformance/admission/test_rate_window.py` checks AD-RATE-03, so the mutants of that row are in
`reference/admission/mutants/rate_window.py`: from a check it is one step to the mutants that measure it, and back.
"""

import importlib
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import pytest

from holdfast.run.suite import checks_of
from holdfast.spec.catalogue import builtin_keys

GENERAL = ("model", "hostile", "hostile_sockets", "hostile_transport", "contract", "invariants")
"""Check modules that try many rows at once; a mutant is there only if no other module checks its row."""


def check_modules(key: str) -> Mapping[str, set[str]]:
    """Returns the names of the check modules, without `test_`, for each row that they verify."""
    found: dict[str, set[str]] = defaultdict(set)
    for id_, spec in checks_of(key).items():
        for claim in spec.claims:
            found[claim.id].add(Path(id_.partition("::")[0]).stem.removeprefix("test_"))
    return found


def allowed(checked_in: set[str]) -> set[str]:
    """Returns the modules that may hold the mutants of a row, given those that check it."""
    return checked_in - set(GENERAL) or checked_in


@pytest.mark.parametrize("key", builtin_keys())
def test_a_mutant_is_in_the_module_named_like_a_check_module_of_its_row(key: str) -> None:
    checked = check_modules(key)
    table = importlib.import_module(f"holdfast.reference.{key}.mutants.table")
    misplaced = {
        mutant.name: f"in {mutant.place.file}, wanted one of {', '.join(sorted(wanted))}"
        for mutant in table.all_mutants().values()
        if Path(mutant.place.file).stem not in (wanted := allowed(checked[mutant.requirement]))
    }
    assert misplaced == {}


def test_a_general_module_holds_mutants_of_rows_that_no_other_module_checks() -> None:
    assert allowed({"model", "queue_order"}) == {"queue_order"}
    assert allowed({"model", "hostile"}) == {"model", "hostile"}
