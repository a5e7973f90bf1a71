"""A campaign with faults, conducted against a real cluster: what ends it, and what two trials prove."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.product.running import holdfast

PROVING = ("load", "lockd", "--campaign", "H1", "--trials", "2", "--results", "results")


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder: Path = tmp_path_factory.mktemp("proving")
    ended = holdfast(folder, *PROVING)
    assert ended.code == 2, ended.text
    document: dict[str, Any] = json.loads((folder / "results" / "load.json").read_text("utf-8"))
    campaign: dict[str, Any] = document["campaigns"][0]
    return campaign


def test_the_arrivals_end_with_the_faults(told: dict[str, Any]) -> None:
    assert [fault["proven"] for fault in told["faults"]] == [True, True]
    assert 0 < told["generator"]["ended"] < 1000 < told["arrivals"]


def test_two_trials_prove_nothing_and_the_report_says_how_many_would(told: dict[str, Any]) -> None:
    recovery = next(each for each in told["findings"] if each["what"] == "recovery of decide")
    assert recovery["verdict"] == "inconclusive"
    assert "of 2 independent trials took longer than 4 s" in recovery["reason"]
    assert "57 more without a miss would prove it" in recovery["reason"]


def test_what_was_acknowledged_is_there_after_both_leaders_were_killed(told: dict[str, Any]) -> None:
    rule = next(each for each in told["findings"] if each["what"] == "decided once")
    assert rule["verdict"] == "pass"
