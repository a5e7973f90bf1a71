"""A target of two roles, one without any URL, through the commands doctor, serve and init; one with its own proxies."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.chaos.toxiproxy import Toxiproxy, UnreachableError
from holdfast.cli.init import commented, least_profile
from holdfast.fixtures.ports import PortPool
from holdfast.spec.catalogue import builtin
from holdfast.target.descriptor import load
from tests.product.running import HOLDFAST, environment, holdfast, started, until

ROOT = Path(__file__).parent.parent.parent
TWO_ROLES = ROOT / "tests" / "fixtures" / "two_roles.toml"
SERVE = """
from dataclasses import replace
from pathlib import Path
from holdfast.cli.serve import _with_counts, serve_target
from holdfast.target.descriptor import load
target = load(Path({descriptor!r}))
serve_target(replace(target, nodes=_with_counts(target, {nodes!r})), descriptor=Path("served.toml"))
"""


def here(folder: Path) -> dict[str, str]:
    """The environment of a user whose nodes are importable."""
    return {**environment(folder), "PYTHONPATH": str(ROOT)}


def doctor(folder: Path, descriptor: Path, *words: str) -> tuple[int, str]:
    done = subprocess.run(
        [HOLDFAST, "doctor", str(descriptor), *words],
        cwd=folder,
        env=here(folder),
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_the_doctor_looks_at_each_role_in_its_own_way(tmp_path: Path) -> None:
    code, said = doctor(tmp_path, TWO_ROLES)
    assert code == 0, said
    lines = [" ".join(line.split()) for line in said.splitlines()]
    assert lines[0] == "two roles: admission, profile full, time scale 0.5, 2 api, 1 worker"
    assert "ok node api-2 (api) is ready 2xx on /health, contains '\"up\": true'" in lines
    assert "ok node worker-1 (worker) is ready an entry in the stream beats, contains 'worker-1'" in lines
    assert any(line.startswith("ok node api-1 (api) metrics 1 metric families at http://127.0.0.1:") for line in lines)
    assert "ok kill and restart worker-1 (worker) back" in lines
    assert "ok kill and restart api-1 (api) back" in lines


@contextmanager
def served(folder: Path, nodes: str, descriptor: Path = TWO_ROLES) -> Iterator[Path]:
    script = SERVE.format(descriptor=str(descriptor), nodes=nodes)
    with subprocess.Popen(
        [sys.executable, "-c", script], cwd=folder, env=here(folder), stdout=subprocess.DEVNULL
    ) as it:
        until(lambda: (folder / "served.toml").exists() or it.poll() is not None, 60, "the nodes are ready")
        try:
            yield folder / "served.toml"
        finally:
            it.send_signal(signal.SIGTERM)
            assert it.wait(30) == 0


def test_served_roles_are_in_the_descriptor_and_the_doctor_finds_them(tmp_path: Path) -> None:
    with served(tmp_path, "api=1,worker=2") as descriptor:
        target = load(descriptor)
        assert [(node.name, node.role, node.start) for node in target.nodes] == [
            ("api-1", "api", None),
            ("worker-1", "worker", None),
            ("worker-2", "worker", None),
        ]
        assert not target.nodes[1].urls
        code, said = doctor(tmp_path, descriptor)
        assert code == 0, said
        assert "node worker-2 (worker) is ready" in said


@pytest.mark.parametrize(
    ("nodes", "complaint"),
    [
        ("gc=1", "--nodes gc=1: no node has the role 'gc'; there are: node"),
        ("node=x", "--nodes node=x: write a number, or one for each role, as in api=2,worker=1"),
        ("0", "--nodes 0: that is no node at all"),
    ],
)
def test_counts_that_make_no_sense_are_one_sentence(tmp_path: Path, nodes: str, complaint: str) -> None:
    ended = holdfast(tmp_path, "serve", "lockd", "--nodes", nodes)
    assert (ended.code, ended.err) == (2, f"holdfast: {complaint}\n")


def test_init_writes_every_role_and_every_way_of_a_setting(tmp_path: Path) -> None:
    text = commented("admission", "store", load(TWO_ROLES))
    assert '# grace = [{ env = "GRACE", unit = "ms", roles = ["api"] }, { flag = "--grace", unit = "go"' in text
    (tmp_path / "mine.toml").write_text(text)
    target = load(tmp_path / "mine.toml")
    assert (target.profile, target.roles) == ("store", ("api", "worker"))


def test_the_least_profile_is_the_one_under_which_a_spec_has_rows() -> None:
    catalogue = builtin("admission")
    assert least_profile(catalogue) == "wire"
    without = {row.id: row for row in catalogue if all({"redis"} <= part.needs for part in row.parts)}
    assert without
    assert least_profile(replace(catalogue, requirements=without)) == "store"


def test_the_doctor_knows_a_target_with_proxies_of_its_own(tmp_path: Path) -> None:
    with PortPool() as ports, started(tmp_path, "relay", "--port", str(port := ports.take())):
        relay = f"http://127.0.0.1:{port}"
        until(lambda: _made(relay), 30, "the proxies are there")
        file = tmp_path / "mine.toml"
        file.write_text(CONTAINERS.format(relay=relay, other="redis_of_b"))
        code, said = doctor(tmp_path, file)
        assert code == 0, said
        assert f"proxy redis_of_a of {relay}: 127.0.0.1:" in said
        assert "control.kill" in said
        file.write_text(CONTAINERS.format(relay=relay, other="missing"))
        code, said = doctor(tmp_path, file)
        assert code == 1
        assert "FAIL  link b-redis" in said
        assert "missing: 404 proxy not found" in said


CONTAINERS = """
[target]
name = "containers"
spec = "admission"
profile = "full"

[[node]]
names = ["a", "b"]
kill = "docker kill mine-{{node}}"
restart = "docker start mine-{{node}}"

[links]
toxiproxy = "{relay}"
proxies = {{ a-redis = "redis_of_a", b-redis = "{other}" }}
"""


def _made(relay: str) -> bool:
    async def make() -> None:
        server = Toxiproxy(relay)
        try:
            for node in "ab":
                await server.create(f"redis_of_{node}", "127.0.0.1:9")
        finally:
            await server.close()

    try:
        asyncio.run(make())
    except UnreachableError:
        return False
    return True
