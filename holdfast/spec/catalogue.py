"""The catalogue of one spec: its requirements, their parts and violations, and the timings that they rely on."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from holdfast import rooms
from holdfast.spec.capability import PROFILES, Capability, OwnCapability
from holdfast.spec.formula import FormulaError, evaluate, names_in
from holdfast.spec.mentions import mentions
from holdfast.spec.own import DeclaredHook, OwnSection, read_hook, read_section

LEVELS = ("MUST", "SHOULD", "MAY")
ORIGINS = ("seed", "upstream", "derived")
_ID = re.compile(r"[A-Z]{2}-[A-Z]+-\d\d")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_UNIT = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


class CatalogueError(ValueError):
    """One or more rows break the catalogue's own rules; the text lists all of them."""


class TimingKind(StrEnum):
    """What a timing is: decides whether it scales, its floor, and whether a miss warns or fails."""

    SEED = "seed"
    FIXED = "fixed"
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
    needs: frozenset[str]
    observe: str


@dataclass(frozen=True)
class Violation:
    number: int
    text: str
    only_with: frozenset[str]


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
    # What a load campaign should look at beyond what a single check can.
    load: str = ""

    @property
    def group(self) -> str:
        return self.id.split("-")[1]

    def part(self, number: int) -> Part:
        return self.parts[number - 1]

    def unseen_without(self, missing: frozenset[str]) -> list[Violation]:
        """Violations that no check can see when these capabilities are missing."""
        return [v for v in self.violations if v.only_with & missing]


@dataclass(frozen=True)
class Document:
    """The public document that a catalogue is made from; `lines` of a row are lines of it.

    It is named and never copied: `sha256` of the file tells whether a reader looks at the same text.
    """

    title: str
    repository: str
    path: str = ""
    commit: str = ""
    sha256: str = ""


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
    # Capabilities that only rows of this spec ask for.
    capabilities: tuple[OwnCapability, ...] = ()
    # After this long a target left alone has forgotten what earlier checks did to it.
    settle: str = "0"
    document: Document | None = None
    # Limits that are sums of others.
    limit_formulas: Mapping[str, str] = field(default_factory=dict)
    # Sections of a descriptor, and hooks, that only this spec has.
    sections: tuple[OwnSection, ...] = ()
    hooks: tuple[DeclaredHook, ...] = ()
    # Where a server listens by default, for descriptors to begin with.
    urls: Mapping[str, str] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Requirement]:
        return iter(self.requirements.values())

    def resolutions_of(self, id_: str) -> list[str]:
        """Resolutions that name this requirement, or its whole group."""
        return [text for text in self.resolutions if mentions(text, id_)]


@cache
def builtin(key: str) -> Catalogue:
    """The catalogue that comes with Holdfast for this spec; raises CatalogueError if there is no such spec."""
    if key not in builtin_keys():
        raise CatalogueError(f"{key}: no such spec; Holdfast has suites for: {', '.join(builtin_keys())}")
    return load(rooms.folder("conformance") / key / "requirements.toml")


def builtin_keys() -> list[str]:
    return sorted(path.parent.name for path in rooms.folder("conformance").glob("*/requirements.toml"))


def load(path: Path) -> Catalogue:
    if not path.is_file():
        raise CatalogueError(f"{path}: no such catalogue")
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
            problems.append(f"{row.id} is there twice")
        rows[row.id] = row
    timings, timing_problems = _timings(data)
    limits, limit_problems = _limits(data.get("limits", {}))
    formulas: dict[str, str] = data.get("formulas", {})
    problems += [
        f"[formulas] {name}: no such timing or limit" for name in formulas.keys() - timings.keys() - limits.keys()
    ]
    document, document_problems = _document(spec.get("document"))
    sections = [read_section(raw) for raw in data.get("section", ())]
    hooks = [read_hook(raw) for raw in data.get("hook", ())]
    catalogue = Catalogue(
        key=spec["key"],
        title=spec["title"],
        source=spec["source"],
        version=spec["version"],
        resolutions=tuple(spec.get("resolutions", ())),
        excluded=tuple(spec.get("excluded", ())),
        timings=timings,
        limits=limits,
        requirements=rows,
        capabilities=tuple(_own_capability(raw) for raw in data.get("capability", ())),
        settle=spec.get("settle", "0"),
        document=document,
        limit_formulas={name: formulas[name] for name in formulas.keys() & limits},
        sections=tuple(section for section, _ in sections),
        hooks=tuple(hook for hook, _ in hooks),
        urls=spec.get("urls", {}),
    )
    problems += timing_problems + limit_problems + document_problems
    problems += [problem for _, found in (*sections, *hooks) for problem in found]
    return catalogue, problems


def _document(raw: dict[str, str] | None) -> tuple[Document | None, list[str]]:
    if raw is None:
        return None, []
    known = [each.name for each in fields(Document)]
    document = Document(**{"title": "", "repository": "", **{k: v for k, v in raw.items() if k in known}})
    problems = [f"{name!r} is none of {', '.join(known)}" for name in raw if name not in known]
    problems += [f"{name} is missing" for name in ("title", "repository") if not raw.get(name)]
    if document.commit and not _COMMIT.fullmatch(document.commit):
        problems.append("commit is written with all of its 40 hexadecimal digits")
    if document.sha256 and not _SHA256.fullmatch(document.sha256):
        problems.append("sha256 has 64 hexadecimal digits")
    return document, [f"[spec] document: {problem}" for problem in problems]


def _timings(data: dict[str, Any]) -> tuple[dict[str, Timing], list[str]]:
    formulas: dict[str, str] = data.get("formulas", {})
    tables: dict[str, Any] = data.get("timings", {})
    found: dict[str, Timing] = {}
    problems: list[str] = []
    kinds = {"seed": tables.get("seed", {}), "fixed": tables.get("fixed", {}), **tables.get("ours", {})}
    for kind, table in kinds.items():
        if not isinstance(table, dict) or kind not in _KINDS:
            problems.append(
                f"[timings.ours] {kind}: our own timings stand in one table a kind ({', '.join(TimingKind)})"
            )
            continue
        for name, text in table.items():
            found[name] = Timing(name, TimingKind(kind), seconds(text), formulas.get(name))
    return found, problems


def _limits(tables: dict[str, Any]) -> tuple[dict[str, float], list[str]]:
    """Limits of all tables by name; the kind of a limit is its table, as for timings."""
    flat: dict[str, Any] = {}
    for value in tables.values():
        for name, number in value.items():
            flat.update(number if isinstance(number, dict) else {name: number})
    numbers = {name: number for name, number in flat.items() if isinstance(number, int | float)}
    problems = [f"[limits] {name}: {flat[name]!r} is no number" for name in flat.keys() - numbers]
    return numbers, problems


def _requirement(spec: str, raw: dict[str, Any]) -> Requirement:
    main = frozenset(raw["needs"])
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
            *(Part(n, main | frozenset(extra["needs"]), extra["observe"]) for n, extra in enumerate(extras, 2)),
        ),
        timing=tuple(raw.get("timing", ())),
        violations=tuple(
            Violation(n, text, frozenset(only_with.get(str(n), []))) for n, text in enumerate(raw["violations"], 1)
        ),
        samples=raw.get("samples"),
        excluded=raw.get("excluded"),
        load=raw.get("load", ""),
    )


def _own_capability(raw: dict[str, str]) -> OwnCapability:
    if raw["profile"] not in PROFILES:
        raise CatalogueError(
            f"[[capability]] {raw['name']}: profile {raw['profile']!r} is none of {', '.join(PROFILES)}"
        )
    return OwnCapability(**raw)


def _problems(catalogue: Catalogue) -> Iterator[str]:
    for timing in catalogue.timings.values():
        if timing.formula is not None:
            yield from _formula_problems(timing.name, timing.formula, timing.seconds, catalogue)
    for name, formula in catalogue.limit_formulas.items():
        yield from _formula_problems(name, formula, catalogue.limits[name], catalogue)
    for row in catalogue:
        yield from (f"{row.id}: {problem}" for problem in _row_problems(row, catalogue))


def _row_problems(row: Requirement, catalogue: Catalogue) -> Iterator[str]:
    if not _ID.fullmatch(row.id):
        yield "an id is written like AD-RATE-03"
    if row.level not in LEVELS:
        yield f"level {row.level!r} is none of {', '.join(LEVELS)}"
    if row.origin not in ORIGINS:
        yield f"origin {row.origin!r} is none of {', '.join(ORIGINS)}"
    if not row.violations and not row.excluded:
        yield "no violation is named, so no check of it can be proven"
    if row.samples is not None and row.samples < 1:
        yield "samples must be at least 1"
    for name in row.timing:
        if name not in catalogue.timings and name not in catalogue.limits:
            yield f"timing {name!r} is neither in [timings] nor in [limits]"
    yield from _unknown_needs(row, catalogue)
    for violation in row.violations:
        if violation.only_with and not any(violation.only_with <= part.needs for part in row.parts):
            yield f"only_with of violation {violation.number} is met by no part"


def _unknown_needs(row: Requirement, catalogue: Catalogue) -> Iterator[str]:
    known = {*Capability, *(own.name for own in catalogue.capabilities)}
    asked = frozenset[str]().union(*(part.needs for part in row.parts), *(each.only_with for each in row.violations))
    for need in sorted(asked - known):
        yield f"needs {need!r}, which is no capability; declare one of this spec's own under [[capability]]"


def _formula_problems(name: str, formula: str, stated: float, catalogue: Catalogue) -> Iterator[str]:
    """The tables hold the figures for people, the formulas say how they come about: both must agree."""
    known: dict[str, float] = {n: t.seconds for n, t in catalogue.timings.items()} | dict(catalogue.limits)
    try:
        unknown = [each for each in names_in(formula) if each not in known]
        total = evaluate(formula, lambda each: known.get(each, 0.0))
    except FormulaError as error:
        yield f"[formulas] {name}: {error}"
        return
    if unknown:
        yield f"[formulas] {name}: unknown {', '.join(unknown)}"
    elif abs(total - stated) > 1e-9:
        yield f"[formulas] {name}: the sum is {total:g}, the table says {stated:g}"
