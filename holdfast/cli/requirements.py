"""`holdfast requirements`: the rows of the catalogues, as lines or as JSON."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from holdfast.spec.catalogue import Catalogue, Requirement, builtin, builtin_keys


def list_requirements(key: str | None, *, as_json: bool) -> str:
    catalogues = [builtin(one) for one in ([key] if key else builtin_keys())]
    if as_json:
        rows = [_fields(catalogue, row) for catalogue in catalogues for row in catalogue]
        return json.dumps(rows, ensure_ascii=False, indent=1)
    return "\n".join(line for catalogue in catalogues for line in _lines(catalogue))


def _lines(catalogue: Catalogue) -> Iterator[str]:
    violations = sum(len(row.violations) for row in catalogue)
    yield f"{catalogue.key} {catalogue.version}: {len(catalogue.requirements)} requirements, {violations} violations"
    for row in catalogue:
        yield f"  {row.id:<12} {row.level:<7} {row.title}"


def _fields(catalogue: Catalogue, row: Requirement) -> dict[str, Any]:
    return {
        "id": row.id,
        "spec": row.spec,
        "level": row.level,
        "origin": row.origin,
        "title": row.title,
        "text": row.text,
        "document": asdict(catalogue.document) if catalogue.document else None,
        "section": row.section,
        "lines": row.lines,
        "parts": [{"part": p.number, "needs": sorted(p.needs), "observe": p.observe} for p in row.parts],
        "timing": list(row.timing),
        "samples": row.samples,
        "violations": [v.text for v in row.violations],
        "excluded": row.excluded,
        "load": row.load,
    }
