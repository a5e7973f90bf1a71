"""A zip download, or a share without symbolic links: the same imports, runs, mutants, pytest arguments and wheel."""

import zipfile
from pathlib import Path

import pytest

from holdfast.rooms import ROOMS
from tests.product.test_wheel import build
from tests.product.trees import ROOT, copy_of_the_tree, run_in, without_links

SUITE_MODULES = """
import sys
import pytest
pytest.main(["conformance/admission/test_version.py", "--holdfast-target=admission", "-q"])
print(sorted(name for name in sys.modules if name.endswith("test_version") or name in ("conformance", "proto")))
"""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout with text files in place of the links; with nothing there, as in an sdist: test_sdist.py."""
    return without_links(copy_of_the_tree(tmp_path_factory.mktemp("links") / "holdfast"))


def test_every_room_is_imported_from_it(checkout: Path) -> None:
    names = ", ".join(f"holdfast.{room}" for room in ROOMS)
    code = f"import {names}; print(*(module.__file__ for module in ({names})), sep='\\n')"
    found = run_in(checkout, "python", "-c", code).split()
    assert [Path(file).resolve() for file in found] == [(checkout / room / "__init__.py").resolve() for room in ROOMS]


def test_a_suite_and_a_mutant_run_in_it(checkout: Path) -> None:
    assert "2 pass: exit 0" in run_in(checkout, "holdfast", "run", "admission", "--only", "AD-VER")
    matrix = run_in(checkout, "holdfast", "mutants", "admission", "--only", "AD-VER-01/2")
    assert "1 mutants: 1 killed, 0 survived" in matrix


@pytest.mark.parametrize("spelling", ["conformance/admission", "holdfast/conformance/admission"])
def test_both_spellings_of_a_path_work_under_pytest(checkout: Path, spelling: str) -> None:
    words = ("--holdfast-target", "admission", "-k", "version", "-q")
    assert " passed" in run_in(checkout, "python", "-m", "pytest", spelling, *words)


def test_modules_have_one_name_in_it(checkout: Path) -> None:
    *_, names = run_in(checkout, "python", "-c", SUITE_MODULES).splitlines()
    assert names == "['holdfast.conformance.admission.test_version']"


def test_its_wheel_is_the_one_of_a_checkout_with_links(checkout: Path, tmp_path: Path) -> None:
    with (
        zipfile.ZipFile(build(checkout, tmp_path / "without", "--wheel")) as without,
        zipfile.ZipFile(build(ROOT, tmp_path / "with", "--wheel")) as with_links,
    ):
        assert set(without.namelist()) == set(with_links.namelist())
