"""Entries of [not_offered]: what a target does without, by its own word, each with a reason.

A row that can't be observed leaves a run undecided (exit code 2), because nobody can tell whether the target keeps it.
An entry here says that the target does not offer it at all; its rows are `not-applicable` then, with the reason. A key
is a requirement (`XX-REG-01`), one part of it (`XX-REG-01#2`), a group (`XX-REG`), a capability (`metrics`), or a
cause as a run has named it after "blocked by: no" (`admin calls`).
"""

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from holdfast.spec.capability import Capability
from holdfast.spec.catalogue import Catalogue, Part, Requirement

_LIKE_A_ROW = re.compile(r"[A-Z]{2}-[A-Z]+(-\d+)?(#\d+)?")


@dataclass(frozen=True)
class NotOffered:
    """The reasons by key."""

    reasons: Mapping[str, str] = field(default_factory=dict)

    def of_part(self, row: Requirement, part: Part) -> str:
        """Returns why the target does not offer what this part looks at; empty if it says nothing."""
        group = row.id.rpartition("-")[0]
        keys = [f"{row.id}#{part.number}", row.id, group, *sorted(part.needs)]
        return next((said(self.reasons[key]) for key in keys if key in self.reasons), "")

    def of_cause(self, hook: str) -> str:
        """Returns why the target does not offer what a check could not do without."""
        found = (reason for key, reason in self.reasons.items() if hook == key or hook.startswith(f"{key}:"))
        return next((said(reason) for reason in found), "")

    def kind_of(self, key: str, catalogue: Catalogue) -> str:
        """Returns what an entry is taken for."""
        if _LIKE_A_ROW.fullmatch(key):
            rows = [row for row in catalogue if key.partition("#")[0] in (row.id, row.id.rpartition("-")[0])]
            return f"{len(rows)} {'row' if len(rows) == 1 else 'rows'}"
        own = [each.name for each in catalogue.capabilities]
        return "a capability" if key in [*Capability, *own] else "a cause that a run names"


def said(reason: str) -> str:
    return f"not offered: {reason}"


def _parts(catalogue: Catalogue, row: str) -> int:
    return len(catalogue.requirements[row].parts)


def problems(entries: Mapping[str, object], catalogue: Catalogue) -> Iterator[str]:
    """Yields what is wrong with the section, one sentence each."""
    ids = {row.id for row in catalogue}
    groups = {id_.rpartition("-")[0] for id_ in ids}
    for key, reason in entries.items():
        row, _, part = key.partition("#")
        if not isinstance(reason, str) or not reason.strip():
            yield f'[not_offered] {key}: say why, "{key}" = "we have no …"'
        elif _LIKE_A_ROW.fullmatch(key) and row not in ids | groups:
            near = difflib.get_close_matches(row, ids | groups, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "see holdfast requirements"
            yield f"[not_offered] {key}: no requirement or group of {catalogue.key}; {hint}"
        elif row in ids and "#" in key and not (part.isdecimal() and 1 <= int(part) <= _parts(catalogue, row)):
            yield f"[not_offered] {key}: there is no such part; see holdfast explain {row}"
