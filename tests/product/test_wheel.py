"""What is installed is not the checkout: the wheel works without it, and beside packages named like our rooms."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
INSTALL_DEADLINE = 300.0
# Public packages that have the import names of two of our rooms, and one whose pytest options are called like ours.
NAMESAKES = ("proto-plus", "fixtures", "pytest-profiling")
OF_OURS, OF_THEIRS = "--holdfast-profile", "--profile "
IDENTIFY = "import fixtures, proto, holdfast.proto, holdfast.fixtures; print(proto.Message, fixtures.Fixture)"


def command(*words: str | Path, cwd: Path) -> str:
    """Its output; the environment is ours, without what points back to the checkout."""
    hidden = ("PYTHONPATH", "VIRTUAL_ENV", "TOX_ENV_DIR")
    env = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run(
        words, cwd=cwd, env=env, capture_output=True, text=True, timeout=INSTALL_DEADLINE, check=False
    )
    assert done.returncode == 0, f"{' '.join(map(str, words))}\n{done.stdout}{done.stderr}"
    return done.stdout


def build(source: Path, out: Path, *kinds: str) -> Path:
    """The wheel built from this tree; without kinds by way of the sdist."""
    command(sys.executable, "-m", "build", "--no-isolation", *kinds, "--outdir", out, source, cwd=out.parent)
    (wheel,) = out.glob("*.whl")
    return wheel


def install(folder: Path, *packages: str | Path) -> Path:
    """The `bin` of a new environment with these packages, in the versions of the constraints file."""
    uv = shutil.which("uv") or shutil.which("uv", path=Path(sys.executable).parent)
    python, constraints = folder / "bin" / "python", ROOT / "constraints.txt"
    if uv:
        command(uv, "venv", "--python", sys.executable, folder, cwd=folder.parent)
        command(uv, "pip", "install", "--python", python, "-c", constraints, *packages, cwd=folder.parent)
    else:
        command(sys.executable, "-m", "venv", folder, cwd=folder.parent)
        command(python, "-m", "pip", "install", "-c", constraints, *packages, cwd=folder.parent)
    return folder / "bin"


def test_the_sdist_has_all_that_the_wheel_needs(tmp_path: Path) -> None:
    from_tree = zipfile.ZipFile(build(ROOT, tmp_path / "tree", "--wheel"))
    from_sdist = zipfile.ZipFile(build(ROOT, tmp_path / "sdist"))
    with from_tree, from_sdist:
        names = set(from_tree.namelist())
        assert names == set(from_sdist.namelist())
    for needed in (
        "reports/templates/report.html.j2",
        "fixtures/targets/admission.toml",
        "reference/admission/lua/shared/now.lua",
    ):
        assert f"holdfast/{needed}" in names


def test_the_wheel_works_outside_the_checkout_beside_its_namesakes(tmp_path: Path) -> None:
    wheel = build(ROOT, tmp_path / "dist", "--wheel")
    assert wheel.name.startswith("holdfast_conformance-"), "the public index has another project called holdfast"
    programs, elsewhere = install(tmp_path / "environment", wheel, *NAMESAKES), tmp_path / "elsewhere"
    elsewhere.mkdir()

    assert command(programs / "holdfast", "--version", cwd=elsewhere).startswith("holdfast ")
    assert "AD-ADMIT-01" in command(programs / "holdfast", "requirements", "admission", cwd=elsewhere)
    assert "1 pass: exit 0" in command(
        programs / "holdfast", "run", "admission", "--only", "AD-ADMIT-01", cwd=elsewhere
    )
    assert (elsewhere / "holdfast-results" / "report.html").exists()
    assert "pass: exit 0" in command(programs / "holdfast", "run", "lockd", "--only", "TC-IDENT-01", cwd=elsewhere)
    options = command(programs / "pytest", "--help", cwd=elsewhere)
    assert OF_OURS in options
    assert OF_THEIRS in options
    public = command(programs / "python", "-c", IDENTIFY, cwd=elsewhere)
    assert public.split() == ["<class", "'proto.message.Message'>", "<class", "'fixtures.fixture.Fixture'>"]
