"""From a clone to a failing requirement that one understands, with the README alone: its blocks, pasted one by one."""

import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from tests.pages import ROOT, fenced_below
from tests.product.leftovers import look
from tests.product.pythons import OLDEST, pythons
from tests.product.running import SOON, environment, until
from tests.product.trees import copy_of_the_tree

PYTHONS = pythons()
WITHIN = 600.0
BLOCKS = fenced_below(ROOT / "README.md", "## See a server fail", "console")
END_OF_A_BLOCK = "=== end of block"
# What the reader learns: the row, its verdict, what was expected, what came, how to repeat it, and what was broken.
LEARNT = {
    "admission": (
        r"^AD-VER-01  MUST  Only the current build is let in +fail$",
        r"^  expected  failed VERSION_MISMATCH$",
        r"^  seen      200 success ",
        r"^  reason    no build$",
        r"^  repeat    holdfast run admission --only AD-VER-01 --target mutant.toml --seed 1$",
        r"^1 fail: exit 1",
        r"AD-VER-01/3  A missing build skips the check\.$",
        r"^      overrides  method Rules.build_ok ",
    ),
    "lockd": (
        r"^TC-AUTH-03  MUST  One server certificate works on every route +fail$",
        r"^  expected  an answer other than 403$",
        r"^  seen      403 tc_forbidden$",
        r"^     \+\d\.\d{3}  → GET /v1/tc/leader ",
        r"^  repeat    holdfast run lockd --only TC-AUTH-03 --target mutant.toml --seed 1$",
        r"^1 fail: exit 1",
        r"TC-AUTH-03/1  Client-auth routes demand a spiffe://lockd/tc/ URI\.$",
    ),
}


def pasted(block: str) -> str:
    """What a reader pastes: the lines behind the prompts."""
    lines = [line.removeprefix("$ ") for line in block.splitlines() if line.startswith("$ ")]
    return "\n".join([*lines, f"echo '{END_OF_A_BLOCK}'"])


def newcomer(folder: Path, python: Path) -> dict[str, str]:
    """The environment of somebody who has this Python as python3 and nothing of Holdfast."""
    programs = folder / "programs"
    programs.mkdir()
    (programs / "python3").symlink_to(python)
    hidden = ("PYTHON", "VIRTUAL_ENV", "PYTEST_", "COV_", "TOX_", "UV_")
    env = {name: value for name, value in environment(folder).items() if not name.startswith(hidden)}
    ours = Path(sys.executable).parent
    path = [place for place in env["PATH"].split(os.pathsep) if Path(place) != ours]
    # The versions of the constraints file, so that a release of somebody else's is no failure of ours.
    quick = {"PIP_CONSTRAINT": str(ROOT / "constraints.txt"), "PIP_NO_COMPILE": "1", "PIP_QUIET": "1"}
    return {**env, **quick, "PATH": os.pathsep.join([str(programs), *path])}


@pytest.mark.filterwarnings("default")
def test_there_is_more_than_one_python() -> None:
    """Says loudly, but without failing, that the other tests here saw one Python only."""
    assert PYTHONS
    if len(PYTHONS) == 1:
        warnings.warn(f"ONLY ONE PYTHON HERE, {PYTHONS}: README WAS NOT TRIED ON ANOTHER", pytest.PytestWarning, 2)


@pytest.mark.parametrize("version", sorted({min(PYTHONS), max(PYTHONS)}), ids=lambda it: "python{}.{}".format(*it))
def test_the_readme_leads_from_a_clone_to_a_failing_row_of_two_specs(tmp_path: Path, version: tuple[int, int]) -> None:
    clone = copy_of_the_tree(tmp_path / "clone")
    done = subprocess.run(
        ["bash", "-c", "\n".join(map(pasted, BLOCKS))],
        cwd=clone,
        env=newcomer(tmp_path, PYTHONS[version]),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=WITHIN,
        check=False,
    )
    installed, *shown = done.stdout.split(f"{END_OF_A_BLOCK}\n")
    assert len(shown) == len(BLOCKS), done.stdout
    assert "rror" not in installed, installed
    assert "Traceback" not in done.stdout, done.stdout
    assert (clone / ".venv" / "lib" / "python{}.{}".format(*version)).is_dir()
    text = "".join(shown)
    missing = [each for lines in LEARNT.values() for each in lines if not re.search(each, text, re.MULTILINE)]
    assert not missing, f"{missing}\n{text}"
    assert not (clone / "mutant.toml").exists()
    until(lambda: not look(tmp_path / "scratch"), SOON, "no process of the blocks is left")


def test_the_oldest_python_is_the_one_that_the_readme_names() -> None:
    assert f"Python {OLDEST[0]}.{OLDEST[1]} or newer" in (ROOT / "README.md").read_text()
