"""Copies of this tree: as it is, as a zip download has it, without the links of the rooms, and as the sdist has it."""

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from holdfast.rooms import ROOMS
from tests.product.running import environment

ROOT = Path(__file__).parent.parent.parent
DEADLINE = 300.0
# What a run, a build or a tool leaves in a checkout, and history.
LEFT_OUT = shutil.ignore_patterns(
    *(".git", ".tox", ".venv", ".coverage*", ".hypothesis", ".schemathesis", "*_cache", "__pycache__"),
    *("holdfast-results*", "dist", "build"),
)


def copy_of_the_tree(folder: Path) -> Path:
    return shutil.copytree(ROOT, folder, symlinks=True, ignore=LEFT_OUT)


def without_links(tree: Path) -> Path:
    """Replace each link by the text file that git writes where it can't make links."""
    for room in ROOMS:
        link = tree / "holdfast" / room
        link.unlink(missing_ok=True)
        link.write_text(f"../{room}")
    return tree


def unpacked_sdist(folder: Path) -> Path:
    """Build the sdist of this tree and unpack it; return the folder with what was in it."""
    folder.mkdir(parents=True, exist_ok=True)
    build = (sys.executable, "-m", "build", "--no-isolation", "--sdist", "--outdir", folder, ROOT)
    subprocess.run(build, check=True, capture_output=True, timeout=DEADLINE)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    return folder / archive.name.removesuffix(".tar.gz")


def run_in(tree: Path, *words: str | Path, within: float = DEADLINE) -> str:
    """Run a command on the modules of this tree, in its folder; return what it printed. It has to end with 0."""
    scratch = tree.parent / f"{tree.name}-scratch"
    scratch.mkdir(exist_ok=True)
    # What changes how pytest and the terminal behave is this test run's own.
    hidden = ("COV_", "COVERAGE_", "PYTEST_", "NO_COLOR", "FORCE_COLOR")
    env = {name: value for name, value in environment(scratch).items() if not name.startswith(hidden)}
    programs = Path(sys.executable).parent
    env |= {"PYTHONPATH": str(tree), "PATH": os.pathsep.join([str(programs), env["PATH"]])}
    done = subprocess.run(words, cwd=tree, env=env, capture_output=True, text=True, timeout=within, check=False)
    assert done.returncode == 0, f"{' '.join(map(str, words))}\n{done.stdout}{done.stderr}"
    return done.stdout
