"""Makes a failing storm short: its faults are left out, on fresh deployments, as long as the same rows still fail.

The means are those of walks (`holdfast.check.walk.shrink`): a fault of the schedule is a step there, and what the
clients saw is the last one, which is never left out. Each try is a run of its own with `--schedule`, so that nothing of
the first one can help it to fail.
"""

import asyncio
import json
import shlex
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from holdfast.chaos.schedules.schedule import Schedule
from holdfast.chaos.schedules.storm import CARRIED
from holdfast.chaos.schedules.text import dump, parse
from holdfast.check.walk.shrink import Again, Found, Shrunk, shrink
from holdfast.check.walk.vocabulary import Broken, Command, Step
from holdfast.run.options import RunOptions
from holdfast.run.options import options as known
from holdfast.run.plan_announcement import foreign_file

# Seconds that are spent on it at most.
SHRINK_STORM = 180.0
FILE = "storm.toml"
_CLIENTS: Step = (Command.of("clients"),)
_MAIN = "from holdfast.cli.main import main; main()"
_CARRIED = ("seed", "engine", "time_scale", "launcher", "stranger")


def shrink_storm(key: str, options: RunOptions, document: dict[str, Any]) -> str:
    """Shrinks the first failing storm of a run; returns what came of it, as lines, empty if no storm failed.

    The schedule that is left is written into the results.
    """
    failed = _first_failing(document)
    if failed is None or options.random == 0 or options.schedule is not None:
        return ""
    schedule = parse(failed["schedule"], "the storm", CARRIED)
    rows = _failed_rows(document)
    folder = options.results or Path()
    with tempfile.TemporaryDirectory(prefix="holdfast-storm-") as place:
        again = _trying(key, options, schedule, Path(place))
        short = asyncio.run(shrunk(schedule, rows, again, time.monotonic() + SHRINK_STORM))
    left = _kept(schedule, short.found.steps)
    (folder / FILE).write_text(dump(left), "utf-8")
    return "\n".join(_told(key, options, left, len(schedule.steps), short, folder / FILE))


async def shrunk(schedule: Schedule, rows: Sequence[str], again: Again, until: float) -> Shrunk:
    """Returns the fewest faults found by then with which the same rows fail."""
    broken = Broken(tuple(rows), (), "", late=False)
    return await shrink(Found(steps_of(schedule), broken, ()), again, until, at_once=1)


def steps_of(schedule: Schedule) -> tuple[Step, ...]:
    return (*((Command.of("fault", which=step.name),) for step in schedule.steps), _CLIENTS)


def _kept(schedule: Schedule, steps: Sequence[Step]) -> Schedule:
    """Returns the schedule with these of its faults."""
    names = {command.get("which") for (command,) in steps}
    return replace(schedule, steps=tuple(step for step in schedule.steps if step.name in names))


def _first_failing(document: dict[str, Any]) -> dict[str, Any] | None:
    attempts = [attempt for check in document["checks"] for attempt in check["attempts"]]
    return next((each for each in attempts if each["verdict"] == "fail" and each["schedule"]), None)


def _failed_rows(document: dict[str, Any]) -> list[str]:
    return [row["id"] for row in document["requirements"] if row["verdict"] == "fail"]


def _trying(key: str, options: RunOptions, schedule: Schedule, place: Path) -> Again:
    async def again(steps: Sequence[Step]) -> Found | None:
        left = _kept(schedule, steps)
        if not left.steps:
            return None  # without any fault there is no storm to try
        (place / FILE).write_text(dump(left), "utf-8")
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", _MAIN, *_words(key, options, place / FILE), "--results", str(place)),
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            code = await process.wait()
        except asyncio.CancelledError:
            process.terminate()
            await process.wait()
            raise
        document = json.loads((place / "results.json").read_text("utf-8")) if code == 1 else None
        rows = tuple(_failed_rows(document)) if document else ()
        return Found(tuple(steps), Broken(rows, (), "", late=False), ()) if rows else None

    return again


def _words(key: str, options: RunOptions, file: Path) -> list[str]:
    words = ["chaos", key, "--schedule", str(file)]
    if options.target and (foreign := foreign_file(options.read_target(key))):
        words += ["--target", foreign]
    for name in _CARRIED:
        value = getattr(options, name)
        words += [] if value == known()[name].default else [known()[name].spelling, str(value)]
    return words


def _told(key: str, options: RunOptions, left: Schedule, before: int, short: Shrunk, file: Path) -> list[str]:
    if not short.repeatable:
        return [f"storm  did not fail again in {short.tries} tries; its schedule is in {file}"]
    enough, words = f"storm  {len(left.steps)} of {before} faults are enough:", shlex.join(_words(key, options, file))
    return [enough, *left.describe().splitlines()[1:], f"repeat holdfast {words}"]
