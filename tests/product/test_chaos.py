"""`holdfast chaos` as a user meets it: receipts or no verdict, the same seed the same storm, windows in the report."""

import json
import os
import re
import socket
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.product.running import HOLDFAST, Ended, environment, holdfast, started, until

ROOT = Path(__file__).parent.parent.parent
TIMEOUT = 300.0
WITH_A_MUTANT_RELAY = """
import holdfast.chaos.relay.server as server
server.PROCESS = "tests.chaos.mutant_relay:main"
from holdfast.cli.main import main
main()
"""
# Steps that name another one as theirs; the others keep their own time, and a slow start may end behind a later step.
AFTER_EACH_OTHER = ["slow", "replica-lost", "failover"]
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
    return holdfast(folder, "chaos", "admission", *words, "--results", "results", within=TIMEOUT)


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
        timeout=TIMEOUT,
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
    carried_out = [fault["fault"] for fault in last]
    assert sorted(carried_out) == ["failover", "rate", "replica-lost", "reset", "restart", "slow"]
    assert [each for each in carried_out if each in AFTER_EACH_OTHER] == AFTER_EACH_OTHER
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
        timeout=TIMEOUT,
        check=False,
    )
    assert done.returncode == 2
    assert "no toxiproxy-server is on PATH" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("listens", [True, False], ids=["wedged", "gone"])
def test_a_toxiproxy_that_does_not_answer_is_one_sentence(tmp_path: Path, listens: bool) -> None:
    with socket.socket() as wedged:
        wedged.bind(("127.0.0.1", 0))
        if listens:
            wedged.listen()  # and never accepts
        url = f"http://127.0.0.1:{wedged.getsockname()[1]}"
        ended = on_toxiproxy(tmp_path, url, "C3", "C5")
    assert ended.code == 2
    assert ended.err.startswith("holdfast: TOXIPROXY_URL: ")
    assert url in ended.err
    assert len(ended.err.strip().splitlines()) == 1


def test_a_toxiproxy_that_is_killed_ends_every_scenario_in_an_error(tmp_path: Path) -> None:
    with started(tmp_path, "relay", "--port", "0") as relay:
        assert relay.stdout is not None
        url = re.search(r"http://[\w.:]+", relay.stdout.readline())
        assert url
        killer = threading.Thread(target=kill_when_in_use, args=(relay, url[0]))
        killer.start()
        ended = on_toxiproxy(tmp_path, url[0], "C5", "C7")
        killer.join()
    assert ended.code == 2, ended.text
    assert set(ended.verdicts().values()) == {"error"}
    assert f"nothing answers at {url[0]}" in ended.out


def kill_when_in_use(relay: subprocess.Popen[str], url: str) -> None:
    """Kill the relay as soon as one of its proxies has a toxic."""

    def in_use() -> bool:
        with urllib.request.urlopen(f"{url}/proxies", timeout=5) as answer:  # noqa: S310 - ours
            return any(proxy["toxics"] for proxy in json.load(answer).values())

    until(in_use, TIMEOUT, "a toxic on a proxy")
    relay.kill()


def on_toxiproxy(folder: Path, url: str, *words: str) -> Ended:
    done = subprocess.run(
        [HOLDFAST, "chaos", "admission", *words, "--engine", "toxiproxy", "--results", "results"],
        cwd=folder,
        env={**environment(folder), "TOXIPROXY_URL": url},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr, folder)
