"""A check is held against a target of its own phase only; one of another phase is not accused of being there."""

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from holdfast.check.context import Context
from holdfast.check.finding import NotApplicable, NotObservable
from holdfast.check.verifies import CheckSpec, Claim
from holdfast.conformance.intents.phases import PHASE_1, must_fit
from holdfast.target.descriptor import load

DESCRIPTOR = """
[target]
name = "stranger"
spec = "intents"
[[node]]
name = "a"
urls = { http = "http://127.0.0.1:8088" }
[dialect]
"""
IN_PHASE_2, IN_PHASE_1 = dict[str, str](), dict(PHASE_1)


def context(folder: Path, dialect: str, settings: dict[str, str], row: str = "IN-BUSY-01") -> Context:
    (folder / "stranger.toml").write_text(DESCRIPTOR + dialect)
    spec = CheckSpec(context, [Claim(row)], settings=settings)
    return cast("Context", SimpleNamespace(target=load(folder / "stranger.toml"), spec=spec))


@pytest.mark.parametrize("settings", [IN_PHASE_2, IN_PHASE_1], ids=["phase 2", "phase 1"])
@pytest.mark.parametrize("dialect", ["", "phase = 2"], ids=["nothing said", "phase 2 said"])
def test_a_target_in_phase_2_is_held_to_either_phase(tmp_path: Path, dialect: str, settings: dict[str, str]) -> None:
    must_fit(context(tmp_path, dialect, settings))


def test_without_the_flag_there_is_no_phase_1_to_judge(tmp_path: Path) -> None:
    must_fit(context(tmp_path, "phase = 3", IN_PHASE_2))
    with pytest.raises(NotApplicable, match="the target is in phase 3"):
        must_fit(context(tmp_path, "phase = 3", IN_PHASE_1))


def test_a_target_that_starts_in_phase_1_is_not_held_to_phase_2(tmp_path: Path) -> None:
    must_fit(context(tmp_path, "phase = 1", IN_PHASE_1))
    with pytest.raises(NotObservable, match=r"\[dialect\] phase = 2"):
        must_fit(context(tmp_path, "phase = 1", IN_PHASE_2))


@pytest.mark.parametrize("phase", [1, 2, 3])
def test_the_row_about_the_removed_flag_chooses_its_phase_itself(tmp_path: Path, phase: int) -> None:
    must_fit(context(tmp_path, f"phase = {phase}", IN_PHASE_2, "IN-PHASE-07"))
