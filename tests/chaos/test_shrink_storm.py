"""A failing storm is made short: faults that are not needed for the same rows to fail are left out."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from holdfast.chaos.schedules.draw import draw
from holdfast.chaos.schedules.schedule import Place, Schedule, Subject
from holdfast.chaos.schedules.storm import CARRIED, ScheduledStorm
from holdfast.chaos.schedules.text import dump, parse
from holdfast.check.walk.shrink import Found
from holdfast.check.walk.vocabulary import Broken, Step
from holdfast.cli import storms
from holdfast.run.options import RunOptions

NODES = [Subject(Place.NODE, name) for name in ("a", "b")]
DRAWN = draw(7, 6, NODES, ["kill", "stop"], 120, known=CARRIED)
ROW = "AD-ADMIT-03"


def failing_with(*needed: str) -> Any:
    """A target that fails if all of these faults strike."""

    async def again(steps: Sequence[Step]) -> Found | None:
        there = {command.get("which") for (command,) in steps}
        return Found(tuple(steps), Broken((ROW,), (), "", late=False), ()) if there >= set(needed) else None

    return again


def short(schedule: Schedule, again: Any) -> list[str]:
    done = asyncio.run(storms.shrunk(schedule, [ROW], again, until=float("inf")))
    return [command.get("which") for (command,) in done.found.steps[:-1]]


@pytest.mark.parametrize("needed", [(0,), (5,), (1, 4)], ids=["the first", "the last", "two"])
def test_only_the_faults_that_are_needed_are_left(needed: tuple[int, ...]) -> None:
    names = [DRAWN.steps[place].name for place in needed]
    assert short(DRAWN, failing_with(*names)) == names


def test_a_storm_that_does_not_fail_again_is_kept_whole() -> None:
    assert short(DRAWN, failing_with("no such fault")) == [step.name for step in DRAWN.steps]


def test_a_storm_is_written_in_the_time_of_the_spec() -> None:
    storm = ScheduledStorm.of(DRAWN, 0.2)
    assert parse(storm.text(), known=CARRIED) == DRAWN
    assert storm.schedule.duration.seconds == pytest.approx(24)


def test_what_is_left_is_printed_with_the_command_that_repeats_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed = DRAWN.steps[2].name
    monkeypatch.setattr(storms, "_trying", lambda *_: failing_with(needed))
    attempt = {"verdict": "fail", "schedule": dump(DRAWN)}
    document = {"checks": [{"attempts": [attempt]}], "requirements": [{"id": ROW, "verdict": "fail"}]}
    options = RunOptions(results=tmp_path, random=3, seed=9, time_scale=0.3)
    said = storms.shrink_storm("admission", options, document).splitlines()
    file = tmp_path / storms.FILE
    assert said[0] == "storm  1 of 6 faults are enough:"
    assert said[1].split()[0] == needed
    assert said[2] == f"repeat holdfast chaos admission --schedule {file} --seed 9 --time-scale 0.3"
    assert [step.name for step in parse(file.read_text("utf-8"), known=CARRIED).steps] == [needed]


def test_a_run_without_a_failing_storm_and_one_of_a_given_schedule_say_nothing(tmp_path: Path) -> None:
    passed = {"checks": [{"attempts": [{"verdict": "pass", "schedule": dump(DRAWN)}]}], "requirements": []}
    assert storms.shrink_storm("admission", RunOptions(results=tmp_path, random=3), passed) == ""
    failed = {"checks": [{"attempts": [{"verdict": "fail", "schedule": dump(DRAWN)}]}], "requirements": []}
    given = RunOptions(results=tmp_path, random=1, schedule=tmp_path / "mine.toml")
    assert storms.shrink_storm("admission", given, failed) == ""
