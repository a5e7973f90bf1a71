"""Mutants that are wrong by a given amount: found by name only, in no kill matrix."""

from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.reference.admission.components import Components as AdmissionComponents
from holdfast.reference.admission.mutants import table as admission
from holdfast.reference.intents.components import Components as IntentsComponents
from holdfast.reference.intents.mutants import table as intents
from holdfast.reference.lockd.components import Components as LockdComponents
from holdfast.reference.lockd.mutants import table as lockd
from holdfast.reference.shared.settings import BadSetting


def test_the_number_is_how_late_a_deadline_is() -> None:
    components = AdmissionComponents()
    admission.apply("graded:deadline:11.5", components)
    node: Any = SimpleNamespace()
    assert components.attempts(node).deadline_of(100.0) == 111.5
    assert AdmissionComponents().attempts is not components.attempts


def test_the_number_is_how_rarely_there_is_a_session_too_many() -> None:
    components = AdmissionComponents()
    admission.apply("graded:oversell:10000", components)
    assert "% 10000 == 0" in components.lua["may_enter"]


def test_lockd_has_an_election_that_comes_late() -> None:
    components = LockdComponents()
    lockd.apply("graded:election:22", components)
    assert issubclass(components.election, LockdComponents.election)
    assert components.election is not LockdComponents.election


@pytest.mark.parametrize("name", ["graded:deadline", "graded:deadline:soon", "graded:nonsense:1", "graded:"])
def test_a_name_that_is_none_is_refused_with_those_that_are(name: str) -> None:
    with pytest.raises(BadSetting, match="there are graded:deadline:<number>, graded:recovery:<number>"):
        admission.apply(name, AdmissionComponents())


def test_a_reference_without_graded_mutants_says_so() -> None:
    with pytest.raises(BadSetting, match="there are none"):
        intents.apply("graded:deadline:1", IntentsComponents())


def test_no_kill_matrix_has_one() -> None:
    for table in (admission, lockd):
        assert not any(name.startswith("graded") for name in table.all_mutants())
