"""Mistakes in a command line: one sentence on standard error and exit code 2, before anything is started."""

import json
import os
from pathlib import Path

import pytest
import typer.main

from holdfast.cli.main import app
from holdfast.run.option_values import OptionError, refuse_values
from holdfast.run.options import RunOptions
from holdfast.run.plain_pytest import undisturbed
from tests.kernel.said import said

MISTAKES = [
    (["run", "admision"], "admision: no such spec; Holdfast has suites for: admission, intents, lockd"),
    (["run", "--stress", "-1"], "--stress -1: must be at least 0"),
    (["run", "--repeat", "0"], "--repeat 0: must be at least 1"),
    (["run", "--jobs", "0"], "--jobs 0: must be at least 1"),
    (["run", "--budget", "soon"], "--budget soon: no duration; write it like 500ms, 2s, 5m or 1h"),
    (["run", "--budget", "0s"], "--budget 0s: nothing fits into that"),
    (["run", "--time-scale", "0"], "--time-scale 0.0: must be above 0 and at most 1, which is the spec's own time"),
    (["run", "--profile", "wir"], "--profile wir: no such profile; did you mean 'wire'?"),
    (["run", "--redis-url", "x"], "--redis-url x: no URL of a Redis; write it like redis://127.0.0.1:6379"),
    (["run", "--nope"], "No such option: --nope; see holdfast run --help"),
    (["run", "admission", "--catalogue", "9"], "admission: the catalogue has version 1.0, not 9"),
    (["chaos", "admission", "--random", "-1"], "--random -1: must be at least 0"),
    (
        ["chaos", "admission", "C1", "--random", "3"],
        "C1: --random and --schedule run storms instead of scenarios; name either",
    ),
    (
        ["walk", "admission", "--violate", "ad-none/1"],
        "AD-NONE/1: no mutant of admission; write it as ID/n, e.g. AD-ADMIT-01/1",
    ),
    (
        ["walk", "admission", "--replay", "nowhere"],
        "nowhere: can't be read (No such file or directory); name a file that a walk has written",
    ),
    (
        ["run", "--redis-url", "redis://h:99999"],
        "--redis-url redis://h:99999: no URL of a Redis; write it like redis://127.0.0.1:6379",
    ),
    (["walk", "admission", "--steps", "0"], "--steps 0: must be at least 1"),
    (["walk", "admission", "--for", "0s"], "--for 0s: nothing fits into that"),
    (["mutants", "admission", "--sample", "0"], "--sample 0: must be at least 1"),
    (["mutants", "admission", "--cap", "-1s"], "--cap -1s: no duration; write it like 500ms, 2s, 5m or 1h"),
    (["serve", "lokd"], "lokd: no such spec; Holdfast has suites for: admission, intents, lockd"),
    (["serve", "lockd", "--nodes", "0"], "--nodes 0: that is no node at all"),
    (["init", "lokd"], "lokd: no such spec; Holdfast has suites for: admission, intents, lockd"),
    (["explain"], "Missing argument 'ID'; see holdfast explain --help"),
    (["diff", "here", "there"], "here: there is no such file; name the folder of a run or its results.json"),
    (
        ["report", "here"],
        "here/events.jsonl: there is no such file; name the folder that a run has written its results to",
    ),
    (["run", "--target", ""], "--target: empty; give it a value, or leave it out"),
    (["run", "--only", " , "], "--only: empty; give it a value, or leave it out"),
    (["run", "--wait", "1s"], "--wait 1s: there is no target to wait for; name one with --target"),
    (["doctor", "--wait", "5", "x.toml"], "--wait 5: no duration; write it like 500ms, 2s, 5m or 1h"),
    (["serve", "lockd", "--violate", ""], "--violate: empty; give it a value, or leave it out"),
    (
        ["serve", "lockd", "--descriptor", "/proc/x"],
        "--descriptor /proc/x: can't be written to (No such file or directory); name another folder",
    ),
    (["serve", "lockd", "--violate", "tc-x"], "TC-X: no mutant of lockd; write it as ID/n, e.g. TC-AUTH-01/1"),
]


@pytest.mark.parametrize(("words", "sentence"), MISTAKES, ids=lambda value: " ".join(value) if value else "")
def test_a_mistake_is_one_sentence_and_exit_code_2(
    words: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert said(*words) == (2, "", f"holdfast: {sentence}\n")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "empty; `holdfast init SPEC` writes a descriptor to fill in"),
        (b'[target]\nname = "\xff"\n', "line 2 is no UTF-8 text; save the file as UTF-8"),
        (b"[target\n", "not valid TOML: Expected ']' at the end of a table declaration (at line 1, column 8)"),
    ],
)
@pytest.mark.parametrize("command", [["doctor"], ["run", "--target"]])
def test_a_file_that_is_no_descriptor_is_told_by_what_it_is(
    command: list[str], content: bytes, sentence: str, tmp_path: Path
) -> None:
    file = tmp_path / "mine.toml"
    file.write_bytes(content)
    assert said(*command, str(file)) == (2, "", f"holdfast: {file}: {sentence}\n")


def test_a_descriptor_may_begin_with_the_mark_of_an_editor(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_bytes(b'\xef\xbb\xbf[target]\nname = "mine"\n')
    assert "[target] spec: missing" in said("doctor", str(file))[2]


def test_results_that_can_not_be_written_are_refused_before_the_run(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    for folder in ("/proc/x", str(tmp_path / "taken" / "below")):
        code, out, err = said("run", "admission", "--results", folder)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert err.startswith(f"holdfast: --results {folder}: can't be written to (")


def test_without_a_last_run_there_is_nothing_that_failed_in_it(tmp_path: Path) -> None:
    words = ("run", "admission", "--last-failed", "--results", str(tmp_path))
    assert "--last-failed: there was no run in" in said(*words)[2]
    (tmp_path / "events.jsonl").write_text("{}\n")
    assert "--last-failed: nothing failed in the last run in" in said(*words)[2]
    cache = tmp_path / ".cache" / "v" / "cache"
    cache.mkdir(parents=True)
    (cache / "lastfailed").write_text(json.dumps({}))
    assert said(*words)[0] == 2


def test_values_that_make_sense_pass() -> None:
    refuse_values(RunOptions())
    refuse_values(RunOptions(repeat=2, stress=0, jobs=1, budget="30m", time_scale=1, redis_url="redis://h:1"))
    with pytest.raises(OptionError, match="--overlap 0: must be at least 1"):
        refuse_values(RunOptions(overlap=0))


def test_help_names_no_type_of_python_and_the_exit_codes() -> None:
    commands = [name for name in vars(typer.main.get_command(app))["commands"] if name != "relay"]
    assert {"run", "init", "diff", "doctor", "load", "walk"} <= set(commands)
    for words in ([], *([name] for name in commands)):
        code, shown, _ = said(*words, "--help")
        assert code == 0
        assert not [word for word in ("<bool>", "<str>", "<Path>", "list[") if word in shown]
        assert "Exit codes." in shown, words


def test_pytest_hears_nothing_of_what_others_want_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", "--maxfail=1")
    monkeypatch.setenv("PYTEST_PLUGINS", "theirs")
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", raising=False)
    with undisturbed():
        assert "PYTEST_ADDOPTS" not in os.environ
        assert "PYTEST_PLUGINS" not in os.environ
        assert os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] == "1"
    assert os.environ["PYTEST_ADDOPTS"] == "--maxfail=1"
    assert "PYTEST_DISABLE_PLUGIN_AUTOLOAD" not in os.environ


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("holdfast run lo", ["lockd"]),
        ("holdfast explain AD-VE", ["AD-VER-01", "AD-VER-02"]),
        ("holdfast run --only ad-ve", ["ad-ver-01", "ad-ver-02"]),
    ],
)
def test_a_shell_is_offered_specs_and_requirements(
    words: str, offered: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_HOLDFAST_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    assert said()[1].split() == offered
