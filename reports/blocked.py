"""What kept checks from judging, told once for all of them: a missing call, a missing hook, a broken arrangement.

One missing administration call may stop two hundred checks. A reader wants to hear of it once, with how much it stops,
and not two hundred times.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from holdfast.reports.text import Json, count

if TYPE_CHECKING:
    from holdfast.reports.result import CheckResult, Row


def blocked(rows: "Iterable[Row]", checks: "Iterable[CheckResult]") -> list[Json]:
    """Returns each cause with the checks and rows that it blocks, the one that blocks most first."""
    causes: dict[str, Json] = {}
    for check in checks:
        if check.blocked_by:
            _entry(causes, check.blocked_by, check.reason)["checks"].append(check.check)
    for row in rows:
        if row.blocked_by:
            _entry(causes, row.blocked_by, row.reason)["rows"].append(row.plan.id)
    return sorted(causes.values(), key=lambda entry: (-len(entry["checks"]), -len(entry["rows"])))


def _entry(causes: dict[str, Json], cause: str, reason: str) -> Json:
    return causes.setdefault(cause, {"cause": cause, "reason": reason, "checks": [], "rows": []})


def blocked_line(entry: Json) -> str:
    """`blocked by: no admin calls (239 checks)`."""
    checks, rows = entry["checks"], entry["rows"]
    many = count(len(checks), "check") if checks else count(len(rows), "row")
    return f"blocked by: {entry['cause']} ({many})"


def told_one_by_one(rows: Sequence[Json]) -> list[Json]:
    """Returns the rows that have to be told one by one: those that no common cause blocks."""
    return [row for row in rows if not row["blocked_by"]]
