"""`holdfast walk` as a user meets it: against the reference server, whole and broken in one way."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HOLDFAST = Path(sys.executable).with_name("holdfast")


def walk(folder: Path, *words: str) -> tuple[int, dict[str, Any]]:
    command: list[str] = [str(HOLDFAST), "walk", "admission", "--results", str(folder), *words]
    code = subprocess.run(command, capture_output=True, text=True, check=False, timeout=400).returncode
    return code, json.loads((folder / "results.json").read_text("utf-8"))


def test_a_walk_against_the_reference_raises_no_alarm(tmp_path: Path) -> None:
    code, results = walk(tmp_path, "--seed", "11", "--for", "15s")
    (attempt,) = results["checks"][0]["attempts"]
    assert (code, attempt["verdict"]) == (0, "pass"), attempt["reason"]
    assert attempt["walk"]["pairs"] > 100
    assert not list((tmp_path / "walks").glob("*"))


@pytest.mark.parametrize(
    ("mutant", "row"),
    [("AD-RECON-07/1", "AD-RECON-07"), ("AD-QUEUE-05/1", "AD-QUEUE-05"), ("AD-RECON-09/2", "AD-RECON-09")],
)
def test_a_walk_finds_a_broken_server_and_the_file_it_leaves_finds_it_again(
    tmp_path: Path, mutant: str, row: str
) -> None:
    code, results = walk(tmp_path / "found", "--seed", "1", "--for", "30s", "--violate", mutant)
    failed = {each["id"] for each in results["requirements"] if each["verdict"] == "fail"}
    assert code == 1
    assert row in failed
    (file,) = (tmp_path / "found" / "walks").glob("*.json")
    assert len(json.loads(file.read_text("utf-8"))["steps"]) <= 6
    again, _ = walk(tmp_path / "again", "--replay", str(file), "--violate", mutant)
    assert again == 1
    clean, _ = walk(tmp_path / "clean", "--replay", str(file))
    assert clean == 0


def test_a_walk_beside_the_reference_says_who_agrees_with_whom(tmp_path: Path) -> None:
    mutant, row = "AD-RECON-07/1", "AD-RECON-07"
    words = ["--against", "reference", "--seed", "1", "--for", "30s"]
    code, results = walk(tmp_path / "broken", *words, "--violate", mutant)
    (finding,) = [each["finding"] for each in results["requirements"] if each["id"] == row]
    assert code == 1
    assert "two against one: reference and the model agree (reference answered " in finding["reason"]
    assert any(line.lstrip().startswith("beside") for line in finding["walk"]["story"])
    clean, results = walk(tmp_path / "clean", *words[:4], "--for", "10s")
    assert clean == 0
    assert {each["against"] for check in results["checks"] for each in _walks(check)} == {"reference"}


def _walks(check: dict[str, Any]) -> list[dict[str, Any]]:
    return [attempt["walk"] for attempt in check["attempts"]]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["admission", "--for", "0s"], "--for 0s: nothing fits into that"),
        (["admission", "--steps", "0"], "--steps 0: must be at least 1"),
        (["admission", "--replay", "nowhere.json"], "nowhere.json"),
        (["admission", "--against", "lockd"], "--against lockd: a target of lockd, not of admission"),
    ],
)
def test_a_mistake_is_a_sentence_and_exit_2(tmp_path: Path, words: list[str], says: str) -> None:
    command = [str(HOLDFAST), "walk", *words, "--results", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert says in done.stderr
