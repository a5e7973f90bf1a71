"""Schedules as TOML.

    [schedule]
    name = "one node without its store"
    duration = "60s"

    [[step]]
    name = "cut-a"
    on = "link:a"
    fault = "stall"
    with = { direction = "down" }
    at = "5s"
    lasts = "20s"

    [[step]]
    name = "kill-b"
    on = "node:b"
    fault = "kill"
    after = "cut-a"          # counted from when that is healed; since = "in-force": from when it began
    at = "2s"
    lasts = "10s"

`parse` reads what `dump` writes as an equal schedule.
"""

import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from holdfast.chaos.schedules.kinds import KINDS, Kind, Takes
from holdfast.chaos.schedules.schedule import NOW, Argument, Schedule, ScheduleError, Since, Step, Subject, Time
from holdfast.chaos.schedules.validate import meant, problems

_HEAD = {"name": str, "duration": str, "seed": int}
_STEP = {
    "name": str, "on": str, "fault": str, "with": dict, "at": str, "lasts": str, "after": str, "since": str
}  # fmt: skip
_NEEDED = {"schedule": ("name", "duration"), "step": ("name", "on", "fault")}
_KIND = {str: "text", int: "a whole number", dict: "a table"}


def load(path: Path, known: Mapping[str, Kind] = KINDS) -> Schedule:
    if not path.is_file():
        raise ScheduleError(f"{path}: no such schedule; name a TOML file")
    return parse(path.read_text(encoding="utf-8"), str(path), known)


def parse(text: str, source: str = "schedule", known: Mapping[str, Kind] = KINDS) -> Schedule:
    """Read a schedule; raise ScheduleError with everything that is wrong with it. `source` is its name in errors."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ScheduleError(f"{source}: not valid TOML: {error}") from error
    found = list(_shape_problems(data))
    schedule = None if found else _read(data, found, known)
    if schedule and not found:
        found += problems(schedule, known=known)
    if found or schedule is None:
        raise ScheduleError("\n".join(f"{source}: {problem}" for problem in found))
    return schedule


def _shape_problems(data: Mapping[str, Any]) -> Iterator[str]:
    for section in data:
        if section not in ("schedule", "step"):
            yield f"[{section}]: no such section{meant(section, ('schedule', 'step'))}"
    head, steps = data.get("schedule"), data.get("step", [])
    if isinstance(head, dict):
        yield from (f"[schedule] {problem}" for problem in _key_problems("schedule", head, _HEAD))
    else:
        yield '[schedule]: missing; write [schedule] with name = "…" and duration = "60s"'
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
        yield "[step]: must be a list: write [[step]]"
        return
    for number, step in enumerate(steps, 1):
        where = f"[[step]] {step.get('name', number)}"
        yield from (f"{where} {problem}" for problem in _key_problems("step", step, _STEP))


def _key_problems(section: str, table: Mapping[str, Any], keys: Mapping[str, type]) -> Iterator[str]:
    for name, value in table.items():
        if name not in keys:
            yield f"{name}: no such key{meant(name, keys)}"
        elif not isinstance(value, keys[name]) or isinstance(value, bool):
            yield f"{name}: must be {_KIND[keys[name]]}"
    yield from (f"{name}: missing; a {section} needs it" for name in _NEEDED[section] if name not in table)


def _read(data: Mapping[str, Any], found: list[str], known: Mapping[str, Kind]) -> Schedule | None:
    """Read what can be read; add what can't be to `found`."""
    head, steps = data["schedule"], []
    for raw in data.get("step", []):
        try:
            steps.append(_step(raw, known))
        except ScheduleError as error:
            found.append(f"[[step]] {raw['name']} {error}")
    try:
        return Schedule(head["name"], _time("duration", head["duration"]), tuple(steps), head.get("seed"))
    except ScheduleError as error:
        found.append(f"[schedule] {error}")
        return None


def _step(raw: Mapping[str, Any], known: Mapping[str, Kind]) -> Step:
    since = raw.get("since", Since.HEALED)
    if since not in set(Since):
        raise ScheduleError(f"since: {since!r} is no moment of a step; write {' or '.join(Since)}")
    if "since" in raw and "after" not in raw:
        raise ScheduleError("since: counts from nothing; name the other step with after, or leave it out")
    return Step(
        name=raw["name"],
        on=_subject(raw["on"]),
        fault=raw["fault"],
        arguments={
            name: _argument(name, value, known.get(raw["fault"])) for name, value in raw.get("with", {}).items()
        },
        at=_time("at", raw["at"]) if "at" in raw else NOW,
        lasts=_time("lasts", raw["lasts"]) if "lasts" in raw else None,
        after=raw.get("after"),
        since=Since(since),
    )


def _subject(text: str) -> Subject:
    try:
        return Subject.parse(text)
    except ScheduleError as error:
        raise ScheduleError(f"on: {error}") from None


def _time(key: str, text: str) -> Time:
    try:
        return Time.parse(text)
    except ScheduleError as error:
        raise ScheduleError(f"{key}: {error}") from None


def _argument(name: str, value: Any, fault: Kind | None) -> Argument:
    """Read an argument; only the kind of fault says whether a text is a time."""
    if not isinstance(value, str | int | float | bool):
        raise ScheduleError(f"with {name}: must be text, a number, or true or false")
    parameter = fault.parameters.get(name) if fault else None
    if parameter and parameter.takes is Takes.TIME and isinstance(value, str):
        return _time(f"with {name}", value)
    return value


def dump(schedule: Schedule) -> str:
    return "\n".join(_lines(schedule)) + "\n"


def _lines(schedule: Schedule) -> Iterator[str]:
    yield "[schedule]"
    yield f"name = {_value(schedule.name)}"
    yield f"duration = {_value(schedule.duration)}"
    if schedule.seed is not None:
        yield f"seed = {schedule.seed}"
    for step in schedule.steps:
        yield from ("", "[[step]]", *_step_lines(step))


def _step_lines(step: Step) -> Iterator[str]:
    yield f"name = {_value(step.name)}"
    yield f"on = {_value(str(step.on))}"
    yield f"fault = {_value(step.fault)}"
    if step.arguments:
        arguments = ", ".join(f"{_value(name)} = {_value(value)}" for name, value in step.arguments.items())
        yield f"with = {{ {arguments} }}"
    if step.after is not None:
        yield f"after = {_value(step.after)}"
        yield f"since = {_value(step.since.value)}"
    yield f"at = {_value(step.at)}"
    if step.lasts is not None:
        yield f"lasts = {_value(step.lasts)}"


def _value(value: Argument) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    # A JSON string is a TOML string, except that TOML wants DEL escaped.
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
