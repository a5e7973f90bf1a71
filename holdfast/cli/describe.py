"""`holdfast requirements`, `explain` and `init`: the catalogue and the descriptor schema, told."""

import json
import textwrap
from collections.abc import Iterator
from typing import Any

from holdfast.catalogue import Catalogue, CatalogueError, Requirement, builtin, builtin_keys
from holdfast.descriptor import SECTION_DOC, SECTIONS
from holdfast.suite import checks_of
from holdfast.target import builtin_path, load

_WIDTH = 110


def list_requirements(key: str | None, *, as_json: bool) -> str:
    catalogues = [builtin(one) for one in ([key] if key else builtin_keys())]
    if as_json:
        return json.dumps([_fields(row) for catalogue in catalogues for row in catalogue], ensure_ascii=False, indent=1)
    return "\n".join(line for catalogue in catalogues for line in _lines(catalogue))


def _lines(catalogue: Catalogue) -> Iterator[str]:
    violations = sum(len(row.violations) for row in catalogue)
    yield f"{catalogue.key} {catalogue.version}: {len(catalogue.requirements)} requirements, {violations} violations"
    for row in catalogue:
        yield f"  {row.id:<12} {row.level:<7} {row.title}"


def _fields(row: Requirement) -> dict[str, Any]:
    return {
        "id": row.id,
        "spec": row.spec,
        "level": row.level,
        "origin": row.origin,
        "title": row.title,
        "text": row.text,
        "section": row.section,
        "lines": row.lines,
        "parts": [{"part": p.number, "needs": sorted(p.needs), "observe": p.observe} for p in row.parts],
        "timing": list(row.timing),
        "samples": row.samples,
        "violations": [v.text for v in row.violations],
        "excluded": row.excluded,
    }


def explain(id_: str) -> str:
    catalogue, row = _find(id_)
    checks = checks_of(catalogue.key)
    lines = [f"{row.id}  {row.level}  {row.title}", *_wrapped(row.text), "", f"  {row.section}, lines {row.lines}"]
    for part in row.parts:
        lines += ["", f"  part {part.number}  needs {', '.join(sorted(part.needs))}", *_wrapped(part.observe)]
        claimed = [
            check for check, spec in checks.items() for c in spec.claims if (c.id, c.part) == (row.id, part.number)
        ]
        lines += [f"    check {check}" for check in claimed] or ["    no check"]
    if row.timing:
        lines += ["", "  relies on", *(f"    {_timing(catalogue, name)}" for name in row.timing)]
    lines += ["", "  violations that its checks must catch"]
    lines += [f"    {row.id}/{violation.number}  {violation.text}" for violation in row.violations]
    return "\n".join(lines)


def _timing(catalogue: Catalogue, name: str) -> str:
    if name in catalogue.limits:
        return f"{name} = {catalogue.limits[name]:g}"
    timing = catalogue.timings[name]
    formula = f" = {timing.formula}" if timing.formula else ""
    return f"{name} = {timing.seconds:g} s ({timing.kind}){formula}"


def _find(id_: str) -> tuple[Catalogue, Requirement]:
    for key in builtin_keys():
        catalogue = builtin(key)
        if id_ in catalogue.requirements:
            return catalogue, catalogue.requirements[id_]
    raise CatalogueError(f"{id_}: no such requirement; `holdfast requirements` lists them")


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent="  ", subsequent_indent="  ")


def commented_descriptor(spec: str) -> str:
    """Every section with every key as a comment; what this spec needs filled in from the built-in target."""
    builtin(spec)
    example = load(builtin_path(spec))
    lines = [f"# Target descriptor for the suite `{spec}`. Lines that start with # are optional."]
    for section, keys in SECTIONS.items():
        lines += ["", f"# {SECTION_DOC[section]}", "[[node]]" if section == "node" else f"[{section}]"]
        for name, key in keys.items():
            value = key.example.replace('"admission"', f'"{spec}"') if key.example else '""'
            hidden = "" if key.required else "# "
            lines.append(f"{hidden}{name} = {value}  # {key.doc}")
        lines += _spec_lines(section, example)
    return "\n".join(lines) + "\n"


def _spec_lines(section: str, example: Any) -> list[str]:
    """What the suite of this spec knows by name, as commented suggestions."""
    match section:
        case "settings":
            return [f'# {name} = {{ env = "{s.env}" }}' for name, s in example.settings.items() if s.env]
        case "credentials":
            return [f'# {name} = "env:{name.upper()}"' for name in example.credentials]
        case "dialect":
            return [f"# {name} = {json.dumps(value)}" for name, value in example.dialect.items()]
        case _:
            return []
