"""`holdfast load` as a user meets it: hopeless targets, an end in the middle, a worker that dies."""

import json
import os
import re
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from holdfast.reports import load as reports
from tests.product.hopeless import Answer, fails_at_every_attempt, fails_at_everything, listening, never_answers
from tests.product.leftovers import Standing, look
from tests.product.running import HOLDFAST, SOON, TIMEOUT, Ended, holdfast, started, until
from tests.product.test_hopeless import describe

WORDS = ("load", "admission", "--results", "results")


def documented(folder: Path) -> dict[str, Any]:
    """Returns what was written, which obeys its schema whatever happened."""
    document: dict[str, Any] = json.loads((folder / "results" / "load.json").read_text("utf-8"))
    assert reports.problems(document) == []
    return document


def load(folder: Path, *words: str) -> Ended:
    ended = holdfast(folder, *WORDS, *words)
    assert "Traceback" not in ended.text
    return ended


def test_where_nothing_listens_one_sentence_says_so(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening, so that no other process does
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        ended = load(tmp_path, "--campaign", "L6", "--target", describe(tmp_path, url))
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"holdfast: nothing listens at {url}")
    assert ended.err.count("\n") == 1


@pytest.mark.parametrize(
    ("answer", "said"), [(fails_at_everything, "was answered 500"), (never_answers, "was answered no answer")]
)
def test_a_target_that_takes_no_preparation_is_reported_in_one_sentence(
    tmp_path: Path, answer: Answer, said: str
) -> None:
    with listening(answer) as url:
        ended = load(tmp_path, "--campaign", "L6", "--target", describe(tmp_path, url))
    assert ended.code == 2
    (campaign,) = documented(tmp_path)["campaigns"]
    assert campaign["verdict"] == "inconclusive"
    assert re.match(rf"could not arrange it: PUT /admin/instances/\S+ {said}", campaign["reason"])


def test_a_target_that_fails_at_every_attempt_gets_a_whole_report(tmp_path: Path) -> None:
    with listening(fails_at_every_attempt) as url:
        ended = load(tmp_path, "--campaign", "L6", "--target", describe(tmp_path, url))
    assert ended.code == 1
    (campaign,) = documented(tmp_path)["campaigns"]
    assert campaign["operations"]["connect"]["outcomes"] == {"500": 1500}
    verdicts = {finding["what"]: finding["verdict"] for finding in campaign["findings"]}
    assert verdicts["connect → success"] == "fail"


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("admission", "auth_secret, to make as many users"),
        ("lockd", "a PEM file with the CA certificate and its key"),
        ("intents", "[credentials] write and read"),
    ],
)
def test_a_descriptor_without_credentials_is_told_in_one_sentence(tmp_path: Path, key: str, said: str) -> None:
    with listening(fails_at_every_attempt) as url:
        head = f'[target]\nname = "bare"\nspec = "{key}"\nprofile = "wire"\n'
        (tmp_path / "bare.toml").write_text(f'{head}[[node]]\nname = "a"\nurls = {{ http = "{url}" }}\n')
        ended = holdfast(tmp_path, "load", key, "--campaign", "L4", "--target", "bare.toml", "--results", "results")
    assert ended.code == 2
    assert "Traceback" not in ended.text
    assert said in documented(tmp_path)["campaigns"][0]["reason"]


def generators(standing: Standing) -> list[int]:
    return sorted(process.pid for process in standing.processes if " locust " in process.command)


def is_under_way(folder: Path) -> bool:
    """Whether some worker has told what it has seen."""
    return any(b'"part"' in file.read_bytes() for file in (folder / "scratch").glob("holdfast-*/*/generator.jsonl"))


def in_the_middle(folder: Path, *, more: int = 0) -> Standing:
    until(lambda: is_under_way(folder), TIMEOUT, "the campaign is under way")
    standing = look(folder / "scratch")
    assert len(generators(standing)) >= 1 + more
    return standing


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_campaign_that_is_stopped_leaves_nothing_behind(tmp_path: Path, signum: signal.Signals) -> None:
    with started(tmp_path, *WORDS, "--campaign", "L1") as runner:
        before = in_the_middle(tmp_path)
        runner.send_signal(signum)
        output, _ = runner.communicate(timeout=SOON)
        until(lambda: not before.left() and not look(tmp_path / "scratch"), SOON, "the machine is as it was before")
    assert "Traceback" not in output
    assert runner.returncode in (2, 130, -signal.SIGKILL)


def test_one_that_is_stopped_while_sockets_are_open_leaves_no_asyncio_process_either(tmp_path: Path) -> None:
    with started(tmp_path, *WORDS, "--campaign", "L5") as runner:
        before = in_the_middle(tmp_path)
        assert any("holdfast.load.bridged" in process.command for process in before.processes)
        runner.kill()
        runner.communicate(timeout=SOON)
        until(lambda: not before.left() and not look(tmp_path / "scratch"), SOON, "the machine is as it was before")


def test_a_worker_that_dies_in_the_middle_makes_the_campaign_inconclusive(tmp_path: Path) -> None:
    port = _free_port()
    more = ("--campaign", "L1", "--processes", "3", "--master-port", str(port))
    with started(tmp_path, *WORDS, *more) as runner:
        standing = in_the_middle(tmp_path, more=3)
        os.kill(generators(standing)[-1], signal.SIGKILL)
        output, _ = runner.communicate(timeout=TIMEOUT)
    assert runner.returncode == 2, output
    (campaign,) = documented(tmp_path)["campaigns"]
    assert campaign["verdict"] == "inconclusive"
    assert "went away in the middle; its last requests were not counted" in campaign["reason"]
    assert all(finding["verdict"] == "inconclusive" for finding in campaign["findings"])


def test_workers_that_come_to_a_master_make_one_campaign(tmp_path: Path) -> None:
    port = str(_free_port())
    worker = ("load", "admission", "--worker", "--master-port", port)
    master = ("--campaign", "L6", "--master", "--processes", "2", "--master-port", port)
    with started(tmp_path, *worker) as one, started(tmp_path, *worker) as two:
        ended = load(tmp_path, *master)
        assert [each.wait(SOON) for each in (one, two)] == [0, 0]
    (campaign,) = documented(tmp_path)["campaigns"]
    assert campaign["generator"]["workers"] == 2
    assert campaign["operations"]["connect"]["count"] == 1500, ended.text


def test_locusts_own_command_runs_a_campaign(tmp_path: Path) -> None:
    """The tool of the field works directly too; the words at the end are ours."""
    with started(tmp_path, "serve", "admission", "--descriptor", "mine.toml") as _server:
        until((tmp_path / "mine.toml").exists, TIMEOUT, "the server has written its descriptor")
        file = Path(__file__).parents[2] / "load" / "admission.py"
        words = ["-f", str(file), "--headless", "-u", "1", "-r", "1", "--target", "mine.toml", "--campaign", "L6"]
        done = subprocess.run(
            [HOLDFAST.with_name("locust"), *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
    assert "connect: QUEUE_FULL" in done.stdout


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port
