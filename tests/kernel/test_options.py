"""One record of options: the flags of pytest and of every command are made from it."""

import inspect
import json
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from holdfast.cli import main, mutants, run
from holdfast.run.options import PYTEST_FLAGS, FaultEngine, KilledBy, Launcher, Level, RunOptions, options
from holdfast.target.descriptor import TargetError

COMMANDS = get_command(main.app).commands  # type: ignore[attr-defined]  # a group of them


def flags(command: str) -> set[str]:
    return {param.name for param in COMMANDS[command].params}


def taken(monkeypatch: pytest.MonkeyPatch, command: str, *words: str) -> RunOptions:
    """The record that a command line leads to."""
    seen: list[RunOptions] = []

    def note(*given: Any, **_more: Any) -> int:
        seen.extend(each for each in given if isinstance(each, RunOptions))
        return 0

    monkeypatch.setattr(run, "run_all", note)
    monkeypatch.setattr(mutants, "kill_matrix", note)
    done = CliRunner().invoke(main.app, [command, *words])
    assert done.exit_code == 0, done.output
    (options,) = seen
    return options


def test_every_option_is_a_flag_somewhere() -> None:
    everywhere = {*PYTEST_FLAGS, *(name for command in COMMANDS for name in flags(command))}
    assert options().keys() <= everywhere


def test_a_command_line_becomes_the_record(monkeypatch: pytest.MonkeyPatch) -> None:
    words = "--target mine.toml --time-scale 1 --only AD-RATE --only AD-QUEUE-01 --level must --repeat 3 --fail-fast"
    asked = taken(monkeypatch, "run", "admission", *words.split(), "--launcher", "exec")
    assert asked == RunOptions(
        target="mine.toml",
        time_scale=1,
        only=("AD-RATE", "AD-QUEUE-01"),
        level=Level.MUST,
        repeat=3,
        fail_fast=True,
        launcher=Launcher.EXEC,
        results=Path("holdfast-results"),
    )


def test_drawn_mutants_are_a_number_and_a_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = taken(monkeypatch, "mutants", "admission", "--drawn", "5", "--seed", "3", "--cap", "90s")
    assert (asked.drawn, asked.seed, asked.cap_s) == (5, 3, 90.0)


def test_drawn_mutants_are_killed_by_everything_or_by_walks_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = taken(monkeypatch, "mutants", "admission", "--drawn", "5", "--by", "walks", "--for", "40s")
    assert (asked.by, asked.for_) == (KilledBy.WALKS, "40s")
    assert taken(monkeypatch, "mutants", "admission", "--drawn", "5").by is KilledBy.ALL


def test_without_flags_the_record_keeps_its_own_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    assert taken(monkeypatch, "run") == RunOptions(results=Path("holdfast-results"))
    assert taken(monkeypatch, "mutants", "admission") == RunOptions(results=Path("holdfast-results/mutants"), jobs=1)


def test_chaos_asks_for_scenarios_at_the_widest_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = taken(monkeypatch, "chaos", "admission", "--engine", "toxiproxy", "--schedule", "mine.toml")
    assert (asked.scenarios, asked.profile, asked.engine) == (True, "full", FaultEngine.TOXIPROXY)
    assert asked.random == 1, "a schedule is run once"


def test_words_of_chaos_are_specs_or_scenarios(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def note(*given: Any, **_more: Any) -> int:
        seen.append((given[0], given[2]))
        return 0

    monkeypatch.setattr(run, "run_all", note)
    for words in ([], ["lockd"], ["lockd", "C6"], ["lockd", "admission", "C3", "C7"], ["lokd", "C3"]):
        CliRunner().invoke(main.app, ["chaos", *words])
    none: tuple[str, ...] = ()
    assert seen == [
        ([], none),
        (["lockd"], none),
        (["lockd"], ("C6",)),
        (["lockd", "admission"], ("C3", "C7")),
        (["lokd"], ("C3",)),
    ]


def test_the_record_survives_the_way_to_another_process() -> None:
    asked = RunOptions(
        target="mine.toml",
        time_scale=0.5,
        only=("AD-RATE", "AD-QUEUE-01"),
        level=Level.MUST,
        results=Path("there"),
        launcher=Launcher.EXEC,
        engine=FaultEngine.TOXIPROXY,
        schedule=Path("mine.toml"),
        repeat=3,
        fail_fast=True,
        sample=4,
    )
    for one in (asked, RunOptions()):
        assert RunOptions.from_json(json.loads(json.dumps(one.to_json()))) == one


def test_help_and_flags_are_written_once() -> None:
    """No module but the record's own spells an option's help text."""
    source = inspect.getsource(main)
    assert [option.name for option in options().values() if option.flag.help in source] == []


def test_pytest_takes_the_same_flags(pytester: pytest.Pytester) -> None:
    shown = pytester.runpytest("--help").stdout.str()
    assert [name for name in PYTEST_FLAGS if options()[name].in_pytest not in shown] == []


pytest_plugins = ["pytester"]


def test_a_stranger_is_drawn_by_node_and_only_where_the_target_takes_it(tmp_path: Path) -> None:
    assert RunOptions(stranger=17).read_target("lockd").extra_settings["stranger"] == "17:{node}"
    assert "stranger" not in RunOptions().read_target("lockd").extra_settings
    foreign = tmp_path / "mine.toml"
    foreign.write_text(
        '[target]\nname = "mine"\nspec = "lockd"\n[[node]]\nname = "a"\nurls = { https = "https://h:1" }\n'
    )
    with pytest.raises(TargetError, match="mine has no setting `stranger`"):
        RunOptions(stranger=17, target=str(foreign)).read_target()
