"""What holds for every catalogue: each row has its checks, each violation its mutant, and each of them is found."""

import importlib
from collections.abc import Mapping
from typing import Any

import pytest

from holdfast.check.verifies import CheckSpec, Claim
from holdfast.cli.trail import Trail, excerpt, shown
from holdfast.reference.shared.mutant_table import Mutant
from holdfast.run.suite import checks_of
from holdfast.spec.catalogue import Catalogue, builtin, builtin_keys

every_catalogue = pytest.mark.parametrize("key", builtin_keys())


def violations(key: str) -> dict[str, str]:
    """The sentences of the catalogue by the names of their mutants."""
    return {f"{row.id}/{each.number}": each.text for row in builtin(key) for each in row.violations}


def mutants(key: str) -> Mapping[str, Mutant[Any]]:
    found: Mapping[str, Mutant[Any]] = importlib.import_module(f"holdfast.reference.{key}.mutants.table").all_mutants()
    return found


def exclusions(key: str) -> Mapping[str, str]:
    found: Mapping[str, str] = importlib.import_module(f"holdfast.reference.{key}.mutants.table").excluded()
    return found


@every_catalogue
def test_every_part_of_every_row_has_a_check(key: str) -> None:
    checks = [spec for spec in checks_of(key).values() if not spec.walks]
    claimed = {(claim.id, claim.part) for spec in checks for claim in spec.claims}
    missing = [
        f"{row.id} part {part.number}"
        for row in builtin(key)
        if not row.excluded
        for part in row.parts
        if (row.id, part.number) not in claimed
    ]
    assert missing == []


@every_catalogue
def test_every_part_can_be_judged_with_no_more_than_it_needs(key: str) -> None:
    """A check needs the union of its claims' needs, so each part wants one that asks for no more.

    Walks do not count: they come to a part or they do not.
    """
    catalogue, checks = builtin(key), [spec for spec in checks_of(key).values() if not spec.walks]
    enough = {(c.id, c.part) for spec in checks for c in spec.claims if _asks_no_more(spec, catalogue, c)}
    blind = [
        f"{row.id} part {part.number}"
        for row in catalogue
        if not row.excluded
        for part in row.parts
        if (row.id, part.number) not in enough
    ]
    assert blind == []


def _asks_no_more(spec: CheckSpec, catalogue: Catalogue, claim: Claim) -> bool:
    return spec.needs(catalogue) <= catalogue.requirements[claim.id].part(claim.part).needs


@every_catalogue
def test_every_violation_has_a_mutant_with_its_sentence_or_a_reason(key: str) -> None:
    wanted = {name: text for name, text in violations(key).items() if name not in exclusions(key)}
    assert {name: mutant.sentence for name, mutant in mutants(key).items()} == wanted


@every_catalogue
def test_every_exclusion_is_of_a_violation_and_gives_a_reason(key: str) -> None:
    assert exclusions(key).keys() <= violations(key).keys()
    assert [name for name, reason in exclusions(key).items() if not reason.strip()] == []


@every_catalogue
def test_a_mutant_declares_only_rows_that_exist_as_broken_too(key: str) -> None:
    rows = builtin(key).requirements.keys()
    assert [name for name, mutant in mutants(key).items() if not set(mutant.also) <= rows] == []


@every_catalogue
def test_every_mutant_names_its_file_and_the_rules_that_it_overrides(key: str) -> None:
    lost = []
    for name, mutant in mutants(key).items():
        seams = mutant.seams()
        homes = (f"reference/{key}/", "reference/shared/")
        if not seams or not shown(mutant.place).startswith(homes[0]):
            lost.append(name)
        lost += [f"{name}: {seam.name}" for seam in seams if not shown(seam.place).startswith(homes)]
        lost += [
            f"{name}: {seam.name} is not at {shown(seam.place)}"
            for seam in seams
            if seam.name.rpartition(".")[2] not in "\n".join(excerpt(seam.place, 5))
        ]
    assert lost == []


@every_catalogue
def test_the_trail_of_a_row_misses_no_check(key: str) -> None:
    """The trail reads only modules that contain the id, so an id that is put together at run time would be lost."""
    for scenarios in (False, True):
        for spec_id, spec in checks_of(key, scenarios=scenarios).items():
            for claim in spec.claims:
                trail = Trail(key, claim.id)
                assert spec_id in (trail.scenarios if scenarios else trail.checks)


@every_catalogue
def test_every_catalogue_names_its_public_document(key: str) -> None:
    document = builtin(key).document
    assert document is not None
    assert all((document.title, document.repository, document.path, document.commit, document.sha256))
