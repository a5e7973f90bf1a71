"""The catalogue of one spec: its requirements, their parts and violations, and the timings that they rely on."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from holdfast.capability import Capability
from holdfast.formula import FormulaError, evaluate, names_in

LEVELS = ("MUST", "SHOULD", "MAY")
ORIGINS = ("seed", "upstream", "derived")
_ID = re.compile(r"[A-Z]{2}-[A-Z]+-\d\d")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_UNIT = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


class CatalogueError(ValueError):
    """One or more rows break the catalogue's own rules; the text lists all of them."""


class TimingKind(StrEnum):
    """What a timing is: decides whether it scales, its floor, and whether a miss warns or fails."""

    SEED = "seed"
    PARAMETER = "parameter"
    TOLERANCE = "tolerance"
    BOUND = "bound"
    LATENCY = "latency"
    GIVE_UP = "give_up"
    STIMULUS = "stimulus"


_KINDS = frozenset(TimingKind)


@dataclass(frozen=True)
class Timing:
    name: str
    kind: TimingKind
    seconds: float
    formula: str | None = None


@dataclass(frozen=True)
class Part:
    """Part 1 is the row's own `observe`; each extra part adds its needs to the row's."""

    number: int
    needs: frozenset[Capability]
    observe: str


@dataclass(frozen=True)
class Violation:
    number: int
    text: str
    only_with: frozenset[Capability]


@dataclass(frozen=True)
class Requirement:
    id: str
    spec: str
    section: str
    lines: str
    level: str
    origin: str
    title: str
    text: str
    parts: tuple[Part, ...]
    timing: tuple[str, ...]
    violations: tuple[Violation, ...]
    samples: int | None = None
    excluded: str | None = None

    @property
    def group(self) -> str:
        return self.id.split("-")[1]

    def part(self, number: int) -> Part:
        return self.parts[number - 1]

    def unseen_without(self, missing: frozenset[Capability]) -> list[Violation]:
        """Violations that no check can see when these capabilities are missing."""
        return [v for v in self.violations if v.only_with & missing]


@dataclass(frozen=True)
class Catalogue:
    key: str
    title: str
    source: str
    version: str
    resolutions: tuple[str, ...]
    excluded: tuple[str, ...]
    timings: Mapping[str, Timing]
    limits: Mapping[str, float]
    requirements: Mapping[str, Requirement]
    # After this long a target left alone has forgotten what earlier checks did to it.
    settle: str = "0"

    def __iter__(self) -> Iterator[Requirement]:
        return iter(self.requirements.values())


@cache
def builtin(key: str) -> Catalogue:
    """The catalogue that comes with Holdfast for this spec."""
    folder = resources.files("holdfast") / "conformance" / key
    return load(Path(str(folder / "requirements.toml")))


def builtin_keys() -> list[str]:
    suite = Path(str(resources.files("holdfast") / "conformance"))
    return sorted(path.parent.name for path in suite.glob("*/requirements.toml"))


def load(path: Path) -> Catalogue:
    if not path.is_file():
        known = ", ".join(builtin_keys())
        raise CatalogueError(f"{path}: no such catalogue; Holdfast has suites for: {known}")
    data = tomllib.loads(path.read_text())
    catalogue, problems = _read(data)
    problems += list(_problems(catalogue))
    if problems:
        raise CatalogueError("\n".join(f"{path}: {problem}" for problem in problems))
    return catalogue


def seconds(text: str) -> float:
    """'500ms', '2s', '5m' as seconds."""
    if not (match := _DURATION.fullmatch(text)):
        raise CatalogueError(f"{text!r} is no duration; write it like 500ms, 2s, 5m or 1h")
    return float(match[1]) * _UNIT[match[2]]


def _read(data: dict[str, Any]) -> tuple[Catalogue, list[str]]:
    spec, problems = data["spec"], []
    rows: dict[str, Requirement] = {}
    for raw in data["requirement"]:
        row = _requirement(spec["key"], raw)
        if row.id in rows:
            problems.append(f"{row.id} stands twice")
        rows[row.id] = row
    timings, timing_problems = _timings(data)
    catalogue = Catalogue(
        key=spec["key"],
        title=spec["title"],
        source=spec["source"],
        version=spec["version"],
        resolutions=tuple(spec.get("resolutions", ())),
        excluded=tuple(spec.get("excluded", ())),
        timings=timings,
        limits=_limits(data.get("limits", {})),
        requirements=rows,
        settle=spec.get("settle", "0"),
    )
    return catalogue, problems + timing_problems


def _timings(data: dict[str, Any]) -> tuple[dict[str, Timing], list[str]]:
    formulas: dict[str, str] = data.get("formulas", {})
    tables: dict[str, Any] = data.get("timings", {})
    found: dict[str, Timing] = {}
    problems: list[str] = []
    kinds = {"seed": tables.get("seed", {}), **tables.get("ours", {})}
    for kind, table in kinds.items():
        if not isinstance(table, dict) or kind not in _KINDS:
            problems.append(
                f"[timings.ours] {kind}: our own timings stand in one table a kind ({', '.join(TimingKind)})"
            )
            continue
        for name, text in table.items():
            found[name] = Timing(name, TimingKind(kind), seconds(text), formulas.get(name))
    problems += [f"[formulas] {name}: no such timing" for name in formulas if name not in found]
    return found, problems


def _limits(tables: dict[str, Any]) -> dict[str, float]:
    """Limits of all tables by name; the kind of a limit is its table, as for timings."""
    flat: dict[str, float] = {}
    for value in tables.values():
        for name, number in value.items():
            flat.update(number if isinstance(number, dict) else {name: number})
    return flat


def _requirement(spec: str, raw: dict[str, Any]) -> Requirement:
    main = frozenset(Capability(need) for need in raw["needs"])
    extras = raw.get("extra", [])
    only_with = raw.get("only_with", {})
    return Requirement(
        id=raw["id"],
        spec=spec,
        section=raw["section"],
        lines=raw["lines"],
        level=raw["level"],
        origin=raw["origin"],
        title=raw["title"],
        text=raw["text"],
        parts=(
            Part(1, main, raw["observe"]),
            *(Part(n, main | _needs(extra["needs"]), extra["observe"]) for n, extra in enumerate(extras, 2)),
        ),
        timing=tuple(raw.get("timing", ())),
        violations=tuple(
            Violation(n, text, _needs(only_with.get(str(n), []))) for n, text in enumerate(raw["violations"], 1)
        ),
        samples=raw.get("samples"),
        excluded=raw.get("excluded"),
    )


def _needs(names: list[str]) -> frozenset[Capability]:
    return frozenset(Capability(name) for name in names)


def _problems(catalogue: Catalogue) -> Iterator[str]:
    for timing in catalogue.timings.values():
        yield from _formula_problems(timing, catalogue)
    for row in catalogue:
        yield from (f"{row.id}: {problem}" for problem in _row_problems(row, catalogue))


def _row_problems(row: Requirement, catalogue: Catalogue) -> Iterator[str]:
    if not _ID.fullmatch(row.id):
        yield "an id is written like AD-RATE-03"
    if row.level not in LEVELS:
        yield f"level {row.level!r} is none of {', '.join(LEVELS)}"
    if row.origin not in ORIGINS:
        yield f"origin {row.origin!r} is none of {', '.join(ORIGINS)}"
    if not row.violations:
        yield "no violation is named, so no check of it can be proven"
    if row.samples is not None and row.samples < 1:
        yield "samples must be at least 1"
    for name in row.timing:
        if name not in catalogue.timings and name not in catalogue.limits:
            yield f"timing {name!r} stands neither in [timings] nor in [limits]"
    for violation in row.violations:
        if violation.only_with and not any(violation.only_with <= part.needs for part in row.parts):
            yield f"only_with of violation {violation.number} is met by no part"


def _formula_problems(timing: Timing, catalogue: Catalogue) -> Iterator[str]:
    if timing.formula is None:
        return
    known: dict[str, float] = {n: t.seconds for n, t in catalogue.timings.items()} | dict(catalogue.limits)
    try:
        unknown = [name for name in names_in(timing.formula) if name not in known]
        total = evaluate(timing.formula, lambda name: known.get(name, 0.0))
    except FormulaError as error:
        yield f"[formulas] {timing.name}: {error}"
        return
    if unknown:
        yield f"[formulas] {timing.name}: unknown {', '.join(unknown)}"
    elif abs(total - timing.seconds) > 1e-9:
        yield f"[formulas] {timing.name}: the sum is {total:g} s, the table says {timing.seconds:g} s"
