"""`holdfast chaos` as a user meets it: receipts or no verdict, the same seed the same storm, windows in the report."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.product.running import Ended, environment, holdfast

ROOT = Path(__file__).parent.parent.parent
PATIENCE = 300.0
WITH_A_MUTANT_RELAY = """
import holdfast.chaos.relay.server as server
server.PROCESS = "tests.chaos.mutant_relay:main"
from holdfast.cli.main import main
main()
"""
SCHEDULE = """
[schedule]
name = "everything once"
duration = "60s"

[[step]]
name = "again"
on = "node:a"
fault = "restart"
at = "1s"

[[step]]
name = "broken"
on = "link:b-redis"
fault = "reset"
at = "3s"

[[step]]
name = "narrow"
on = "link:b-redis"
fault = "rate"
with = { kilobytes = 20 }
at = "8s"
lasts = "6s"

[[step]]
name = "slow"
on = "store:redis"
fault = "slow"
with = { seconds = "100ms real" }
at = "15s"
lasts = "5s"

[[step]]
name = "lonely"
on = "store:redis"
fault = "replica-lost"
after = "slow"
lasts = "5s"

[[step]]
name = "another"
on = "store:redis"
fault = "failover"
after = "lonely"
at = "2s"
"""


def chaos(folder: Path, *words: str) -> Ended:
    return holdfast(folder, "chaos", "admission", *words, "--results", "results", patience=PATIENCE)


def faults(ended: Ended) -> list[dict[str, Any]]:
    attempts = [attempt for check in ended.results()["checks"] for attempt in check["attempts"]]
    return [fault for attempt in attempts for fault in attempt["faults"]]


def test_a_scenario_shows_its_faults_with_their_receipts(tmp_path: Path) -> None:
    ended = chaos(tmp_path, "C3", "C8")
    assert ended.code == 0, ended.text
    seen = faults(ended)
    assert {fault["fault"] for fault in seen} == {"delay", "stall", "lose"}
    assert all(fault["proven"] and fault["in_force_s"] < fault["healed_s"] for fault in seen)
    page = (tmp_path / "results" / "report.html").read_text()
    assert page.count('<rect class="window"') == len(seen)
    assert "the command was run" in page
    commands = {check["command"] for check in ended.results()["checks"] if check["attempts"]}
    assert commands == {f"holdfast chaos admission {name} --engine relay --seed 1" for name in ("C3", "C8")}


def test_a_relay_that_applies_nothing_leaves_every_scenario_inconclusive(tmp_path: Path) -> None:
    words = ["chaos", "admission", "C1", "C3", "C5", "C7", "C8", "--results", "results"]
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", WITH_A_MUTANT_RELAY, *words],
        cwd=tmp_path,
        env={**environment(tmp_path), "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    ended = Ended(done.returncode, done.stdout, done.stderr, tmp_path)
    assert ended.code == 2, ended.text
    assert set(ended.verdicts().values()) == {"inconclusive"}
    assert "fault not applied" in ended.out


def test_the_same_seed_draws_the_same_storms(tmp_path: Path) -> None:
    told = []
    for turn in ("first", "second"):
        (tmp_path / turn).mkdir()
        ended = chaos(tmp_path / turn, "--random", "2", "--seed", "11")
        assert ended.code == 0, ended.text
        lines = [
            line["text"]
            for check in ended.results()["checks"]
            for line in check["attempts"][0]["transcript"]
            if line["dir"] == "!" and " for " in line["text"]
        ]
        told.append(sorted(lines))
    assert told[0] == told[1]
    assert len(told[0]) == 2 * 4, "four strikes a storm"


def test_a_broken_schedule_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(
        '[schedule]\nname = "x"\nduration = "10s"\n[[step]]\nname = "a"\non = "node:a"\n'
    )
    ended = chaos(tmp_path, "--schedule", "mine.toml")
    assert ended.code == 2
    assert ended.err.startswith("holdfast: mine.toml: [[step]]")


def test_a_schedule_of_ones_own_is_carried_out_with_receipts(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(SCHEDULE)
    ended = chaos(tmp_path, "--schedule", "mine.toml")
    assert ended.code == 0, ended.text
    last = ended.results()["checks"][0]["attempts"][-1]["faults"]
    assert [fault["fault"] for fault in last] == ["restart", "reset", "rate", "slow", "replica-lost", "failover"]
    assert all(fault["proven"] for fault in last)


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ('on = "udp:a"\nfault = "loss"\nwith = { share = 0.1 }', "on: the target has no udp:a"),
        ('on = "link:a-b"\nfault = "cut"', "on: the target has no link:a-b"),
        ('on = "store:redis"\nfault = "frozen"', "of both at once neither could be proven"),
    ],
    ids=["udp", "pair", "both"],
)
def test_what_a_target_cannot_have_is_refused_before_anything_starts(tmp_path: Path, step: str, said: str) -> None:
    other = '[[step]]\nname = "cut"\non = "link:a-redis"\nfault = "cut"\nlasts = "5s"\n'
    text = f'[schedule]\nname = "x"\nduration = "10s"\n{other}[[step]]\nname = "s"\nlasts = "5s"\n{step}\n'
    (tmp_path / "mine.toml").write_text(text)
    ended = chaos(tmp_path, "--schedule", "mine.toml")
    assert ended.code == 2
    assert said in ended.err
    assert not (tmp_path / "results").exists()


def test_without_a_toxiproxy_the_remedy_is_told(tmp_path: Path) -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("holdfast"), "chaos", "admission", "C3", "--engine", "toxiproxy"],
        cwd=tmp_path,
        env={**environment(tmp_path), "HOME": str(tmp_path), "PATH": "/nowhere"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 2
    assert "no toxiproxy-server is on PATH" in done.stderr
    assert "Traceback" not in done.stderr
