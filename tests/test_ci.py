"""CI draws the same sample for the same commit, leaves no spec out, and at night leaves nothing out."""

import configparser
import re
from collections.abc import Sequence

import pytest

from holdfast.load.campaign import campaigns
from holdfast.run.suite import checks_of
from holdfast.spec.catalogue import builtin_keys
from tests import ci

KEYS = builtin_keys()


def test_a_commit_always_gets_the_same_sample_and_another_seed_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOLDFAST_CI_SEED", raising=False)
    assert ci.seed() == ci.seed()
    monkeypatch.setenv("HOLDFAST_CI_SEED", "12")
    assert ci.seed() == (12, "HOLDFAST_CI_SEED")
    monkeypatch.setattr(ci, "find_toxiproxy", lambda: "toxiproxy-server")
    samples = {tuple(map(tuple, ci.toxiproxy(number, KEYS))) for number in range(20)}
    assert len(samples) > 10
    assert ci.toxiproxy(3, KEYS) == ci.toxiproxy(3, KEYS)


def test_in_time_every_suite_and_scenario_speaks_in_dialects_beside_another_suite_under_exec() -> None:
    met = {(words[0], words[1]) for number in range(10) for words in ci.stranger(number, KEYS)}
    assert met == {(kind, key) for kind in ("run", "chaos") for key in KEYS}
    named = {
        (words[1], each)
        for number in range(60)
        for words in ci.stranger(number, KEYS)
        for each in words[2:]
        if each in ci.scenarios(words[1])
    }
    assert named == {(key, each) for key in KEYS for each in ci.scenarios(key)}
    for number in range(10):
        assert {words[1] for words in ci.stranger(number, KEYS)} != {words[1] for words in ci.launched(number, KEYS)}


def test_in_time_every_scenario_runs_on_toxiproxy_and_every_suite_under_exec(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ci, "find_toxiproxy", lambda: "toxiproxy-server")
    drawn = {
        (words[1], each)
        for number in range(60)
        for words in ci.toxiproxy(number, KEYS)
        for each in words[2:]
        if each[0] == "C"
    }
    assert drawn == {(key, each) for key in KEYS for each in ci.scenarios(key)}
    assert {words[1] for number in range(10) for words in ci.launched(number, KEYS)} == set(KEYS)


def test_every_named_scenario_is_found() -> None:
    for key in KEYS:
        named = [check for check in checks_of(key, scenarios=True) if re.search(r"::test_c\d+_", check)]
        assert len(ci.scenarios(key)) == len(named) > 0


@pytest.mark.parametrize("part", ["mutants", "storms", "nightly"])
def test_no_spec_is_left_out(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ci, "find_toxiproxy", lambda: "toxiproxy-server")
    assert set(KEYS) <= {words[1] for words in ci.PARTS[part](1, KEYS)}


def test_more_specs_cost_no_more() -> None:
    two, five = ci.mutants(1, ["a", "b"]), ci.mutants(1, ["a", "b", "c", "d", "e"])
    for commands in (two, five):
        assert sum(int(words[words.index("--sample") + 1]) for words in commands) <= ci.MUTANTS


def test_at_night_nothing_is_sampled_and_there_are_two_hundred_storms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ci, "find_toxiproxy", lambda: "toxiproxy-server")
    commands = ci.nightly(1, KEYS)
    assert not any("--sample" in words or "--only" in words for words in commands)
    plain = [words for words in commands if "--stranger" not in words]
    storms = [int(words[words.index("--random") + 1]) for words in plain if "--random" in words]
    assert sum(storms) == 200
    assert ["run", "--time-scale", "1"] in [words[:3] for words in commands]


def test_at_night_ten_strangers_are_met_with_every_scenario(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ci, "find_toxiproxy", lambda: "toxiproxy-server")
    strange = [words for words in ci.nightly(5, KEYS) if "--stranger" in words]
    assert {words[words.index("--stranger") + 1] for words in strange} == {str(number) for number in range(5, 15)}
    for kind in ("run", "chaos"):
        whole = [words[1] for words in strange if words[0] == kind and words[2] == "--stranger"]
        assert sorted(whole) == sorted(KEYS * ci.AT_NIGHT_STRANGERS)


def test_the_worst_code_is_returned_and_a_failure_stops_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    ran: list[Sequence[str]] = []

    def run(command: Sequence[str]) -> int:
        ran.append(command)
        return 2 if len(ran) == 1 else 0

    assert ci.main(["storms"], run) == 2
    assert len(ran) == len(KEYS)
    assert re.match(r"seed \d+, from ", capsys.readouterr().out)
    assert ci.main(["nonsense"], run) == 2


def test_every_campaign_runs_in_full_at_night_and_in_its_short_form_for_a_commit() -> None:
    at_night = {words[1]: words for words in ci.nightly(1, KEYS) if words[0] == "load"}
    for key in ci.loaded(KEYS):
        assert set(campaigns(key)) <= set(at_night[key])
        assert at_night[key][at_night[key].index("--time-scale") + 1] == "1"
    settings = configparser.ConfigParser(interpolation=None)
    settings.read(ci.ROOT / "tox.ini")
    assert "load" in settings["tox"]["env_list"].split(", ")
    commands = settings["testenv:load"]["commands"]
    assert all(f"holdfast load {key} " in commands for key in ci.loaded(KEYS))


def test_no_check_is_left_out_of_the_suites_of_a_commit() -> None:
    settings = configparser.ConfigParser(interpolation=None)
    settings.read(ci.ROOT / "tox.ini")
    assert settings["testenv:conformance"]["commands"] == "holdfast run --jobs 1 {posargs}"
    assert "conformance" in settings["tox"]["env_list"]
