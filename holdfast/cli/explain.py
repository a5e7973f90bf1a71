"""`holdfast explain`: a requirement, a group of them, or a mutant, with the way from the document to the rule.

Each answer names files and lines: of the public document, of the checks and scenarios, of the mutants and of the rules
that those override.
"""

import difflib
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

from holdfast.check.verifies import CheckSpec
from holdfast.cli.trail import Trail, excerpt, last_line, place_of, shown
from holdfast.reference.shared.mutant_table import Mutant
from holdfast.reference.shared.seams import Place, Seam
from holdfast.spec.catalogue import Catalogue, CatalogueError, Requirement, Violation, builtin, builtin_keys

_WIDTH = 110
_RULE_LINES = 10
_MUTANT_LINES = 16


def explain(asked: str) -> str:
    """The answer as text. Letter case does not matter; raises CatalogueError for a name that is not known."""
    name = asked.strip().upper().partition("#")[0]  # a part is shown with its row
    for catalogue in map(builtin, builtin_keys()):
        id_, slash, number = name.partition("/")
        row = catalogue.requirements.get(id_)
        if row and not slash:
            return "\n".join(_row(catalogue, row, Trail(catalogue.key, id_)))
        if row and (found := [each for each in row.violations if str(each.number) == number]):
            return "\n".join(_violation(catalogue, row, found[0], Trail(catalogue.key, id_)))
        if name in _groups(catalogue):
            return "\n".join(_group(catalogue, name, Trail(catalogue.key, f"{name}-")))
    raise CatalogueError(_unknown(asked.strip(), name))


def _groups(catalogue: Catalogue) -> set[str]:
    return {_group_of(row) for row in catalogue}


def _group_of(row: Requirement) -> str:
    return row.id.rpartition("-")[0]


def _unknown(asked: str, name: str) -> str:
    catalogues = [builtin(key) for key in builtin_keys()]
    known = [group for catalogue in catalogues for group in sorted(_groups(catalogue))]
    known += [row.id for catalogue in catalogues for row in catalogue]
    if "/" in name:
        known = [f"{row.id}/{each.number}" for catalogue in catalogues for row in catalogue for each in row.violations]
    near = difflib.get_close_matches(name, known, n=3)
    hint = f"the nearest are {', '.join(near)}" if near else "`holdfast requirements` lists them all"
    return f"{asked}: no requirement, group or mutant has this name; {hint}"


def _group(catalogue: Catalogue, name: str, trail: Trail) -> Iterator[str]:
    rows = [row for row in catalogue if _group_of(row) == name]
    yield f"{name}  {catalogue.key}: {_count(len(rows), 'requirement')}"
    for row in rows:
        checks = _count(len(trail.checks_for(row.id)), "check")
        mutants = _count(len(trail.mutants_for(row.id)), "mutant")
        yield f"  {row.id:<14} {row.level:<7} {checks:<10} {mutants:<11} {row.title}"


def _row(catalogue: Catalogue, row: Requirement, trail: Trail) -> Iterator[str]:
    yield f"{row.id}  {row.level}  {row.title}"
    yield from _wrapped(row.text)
    if row.excluded:
        yield from ("", "  excluded", *_wrapped(row.excluded, 4))
    yield from ("", "  document", *_document(catalogue, row))
    for part in row.parts:
        yield from ("", f"  part {part.number}  needs {', '.join(sorted(part.needs))}", *_wrapped(part.observe, 4))
        yield from _checks(trail.checks_for(row.id, part.number), "check") or ["    no check"]
    if scenarios := trail.scenarios_for(row.id):
        yield from ("", "  chaos scenarios", *_checks(scenarios, "scenario"))
    if row.timing:
        yield from ("", "  timings and limits", *(f"    {_timing(catalogue, name)}" for name in row.timing))
    if row.samples:
        yield from ("", f"  samples {row.samples}")
    if row.load:
        yield from ("", "  under load", *_wrapped(row.load, 4))
    if resolutions := catalogue.resolutions_of(row.id):
        yield from ("", "  resolutions: how contradictions and gaps of the document are read")
        yield from (line for text in resolutions for line in _wrapped(text, 4))
    yield from ("", "  mutants: each violation that the checks must catch, and the rule that it overrides")
    for violation in row.violations:
        yield from _mutant_lines(row, violation, trail)


def _document(catalogue: Catalogue, row: Requirement) -> Iterator[str]:
    where = f"{row.section}, lines {row.lines}; origin: {row.origin}"
    if (document := catalogue.document) is None:
        yield f"    {catalogue.title}: {where}"
        return
    yield f"    {document.title}"
    yield f"    {where}"
    yield f"    {' '.join(word for word in (document.repository, document.path) if word)}"
    if document.commit:
        yield f"    commit {document.commit}"
    if document.sha256:
        yield f"    sha256 {document.sha256}"


def _checks(specs: Iterable[CheckSpec], word: str) -> list[str]:
    return [f"    {word}  {shown(place_of(spec))}  {spec.title}" for spec in specs]


def _mutant_lines(row: Requirement, violation: Violation, trail: Trail) -> Iterator[str]:
    name = f"{row.id}/{violation.number}"
    yield from _wrapped(f"{name}  {violation.text}", 4)
    if name in trail.mutants:
        yield f"      mutant     {shown(trail.mutants[name].place)}"
        yield from (f"      overrides  {_seam(seam)}" for seam in trail.mutants[name].seams())
    else:
        yield f"      no mutant: {trail.excluded.get(name, 'missing')}"


def _seam(seam: Seam) -> str:
    change = f"  ({seam.change})" if seam.change else ""
    return f"{seam.kind} {seam.name}  {shown(seam.place)}{change}"


def _violation(catalogue: Catalogue, row: Requirement, violation: Violation, trail: Trail) -> Iterator[str]:
    name = f"{row.id}/{violation.number}"
    yield from _wrapped(f"{name}  {violation.text}", 0)
    yield from ("", f"  breaks {row.id}  {row.level}  {row.title}", *_wrapped(row.text, 4))
    if name not in trail.mutants:
        yield from ("", f"  no mutant: {trail.excluded.get(name, 'missing')}")
        return
    yield from _broken(trail.mutants[name])
    yield from ("", "  killed when one of these checks fails", *_checks(trail.checks_for(row.id), "check"))
    if violation.only_with:
        yield f"    shows only where the target lets us use {', '.join(sorted(violation.only_with))}"
    yield from ("", "  try it", f"    holdfast mutants {catalogue.key} --only {name}")
    yield f"    holdfast serve {catalogue.key} --violate {name}"


def _broken(mutant: Mutant[Any]) -> Iterator[str]:
    """The mutant's own source, then each rule that it overrides and, where a helper does so, with what."""
    if mutant.also:
        yield f"  also breaks {', '.join(mutant.also)}"
    yield from ("", f"  mutant {shown(mutant.place)}", *_indented(excerpt(mutant.place, _MUTANT_LINES)))
    for seam in mutant.seams():
        yield from ("", f"  overrides {_seam(seam)}", *_indented(excerpt(seam.place, _RULE_LINES)))
        if seam.override and not _inside(seam.override, mutant.place):
            yield f"  with {shown(seam.override)}"
            yield from _indented(excerpt(seam.override, _RULE_LINES))


def _inside(place: Place, statement: Place) -> bool:
    return place.file == statement.file and statement.line <= place.line <= last_line(statement)


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"    | {line}".rstrip() for line in lines]


def _timing(catalogue: Catalogue, name: str) -> str:
    if name in catalogue.limits:
        return f"{name} = {catalogue.limits[name]:g}"
    timing = catalogue.timings[name]
    formula = f" = {timing.formula}" if timing.formula else ""
    return f"{name} = {timing.seconds:g} s ({timing.kind}){formula}"


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _wrapped(text: str, indent: int = 2) -> list[str]:
    pad = " " * indent
    return textwrap.wrap(text, _WIDTH, initial_indent=pad, subsequent_indent=pad)
