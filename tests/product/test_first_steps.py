"""The first steps of somebody new: a descriptor from `init`, filled in, passes `doctor`, whatever else is set up."""

import subprocess
from pathlib import Path

import pytest

from holdfast.target.descriptor import Target, load
from tests.product.running import HOLDFAST, environment, holdfast
from tests.product.test_serve import served


def filled_in(text: str, server: Target) -> str:
    """What `init` writes, with what it asks for: where the server is, and the files of certificates."""
    kind, url = next(iter(server.nodes[0].urls.items()))
    lines = [f'urls = {{ {kind} = "{url}" }}' if line.startswith("urls = ") else line for line in text.splitlines()]
    given = {Path(str(value)).name: str(value) for value in server.credentials.values() if "{" not in str(value)}
    for name, path in given.items():
        lines = [line.replace(f'"certs/{name}"', f'"{path}"') for line in lines]
    return "\n".join(lines) + "\n"


# The variables that `init` asks for, and the credential of the server that each of them gets.
VARIABLES = {"AUTH_SECRET": "auth_secret", "ADMIN_TOKEN": "admin_token", "WRITE_TOKEN": "write", "READ_TOKEN": "read"}


@pytest.mark.parametrize(("spec", "nodes"), [("admission", "1"), ("lockd", "1"), ("intents", "api=1,worker=1")])
def test_what_init_writes_passes_doctor_once_it_is_filled_in(
    tmp_path: Path, spec: str, nodes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = holdfast(tmp_path, "init", spec, "-o", "mine.toml")
    assert written.out == "wrote mine.toml; fill it in, then: holdfast doctor mine.toml\n"
    with served(tmp_path, "--nodes", nodes, key=spec) as descriptor:
        server = load(Path(descriptor))
        mine = tmp_path / "mine.toml"
        mine.write_text(filled_in(mine.read_text(), server))
        for variable, name in VARIABLES.items():
            monkeypatch.setenv(variable, str(server.credentials.get(name, "")))
        looked = holdfast(tmp_path, "doctor", "mine.toml")
    assert (looked.code, looked.err) == (0, ""), looked.text
    assert "ok    credentials" in looked.out
    assert "FAIL" not in looked.out


def test_what_a_ci_asks_of_its_own_pytest_does_not_reach_a_run(tmp_path: Path) -> None:
    asks = {"PYTEST_ADDOPTS": "--no-such-option --maxfail=1", "PYTEST_PLUGINS": "no_such_plugin"}
    done = subprocess.run(
        [HOLDFAST, "run", "admission", "--only", "ad-ver-0?", "--results", "results"],
        cwd=tmp_path,
        env={**environment(tmp_path), **asks},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "2 pass: exit 0, narrowed: --only ad-ver-0?" in done.stdout
