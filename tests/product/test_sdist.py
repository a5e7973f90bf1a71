"""The sdist carries its tests and all that they read: a quick part of them passes from it (`tox -e sdist`: all)."""

from pathlib import Path

from tests.product.trees import ROOT, run_in, unpacked_sdist

# Rules, layers, kernel and reports: what reads the catalogue, data files, templates and Lua of every room.
QUICK = (
    "tests/test_layers.py",
    "tests/kernel/test_catalogue.py",
    "tests/kernel/test_contract.py",
    "tests/kernel/test_plan.py",
    "tests/kernel/test_target.py",
    "tests/kernel/test_verdict.py",
    "tests/reports",
    "tests/reference/test_admission_rules.py",
    "tests/reference/test_admission_scripts.py",
)


def test_tests_pass_from_the_unpacked_sdist(tmp_path: Path) -> None:
    tree = unpacked_sdist(tmp_path)
    assert {path.name for path in (tree / "docs").iterdir()} == {path.name for path in (ROOT / "docs").iterdir()}
    assert not (tree / "holdfast" / "chaos").exists(), "the links are left out: the rooms are at the root"
    last = run_in(tree, "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", *QUICK).splitlines()[-1]
    assert " passed" in last
    assert "skipped" not in last
