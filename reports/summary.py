"""The end of a run in plain lines: verdicts by group, what is not green and why, and whether the plan was kept."""

from collections.abc import Iterator
from typing import Any

from holdfast.reports.finding import WIDTH
from holdfast.reports.text import Json, count, cut, pad, seconds, visible
from holdfast.verdict import Verdict

GREEN = frozenset({Verdict.PASS, Verdict.NOT_APPLICABLE})


def group_of(requirement: str) -> str:
    """`AD-RATE` of `AD-RATE-03`."""
    return requirement.rpartition("-")[0] or requirement


def plan_line(document: Json) -> str:
    plan, planned = document["plan"], document["planned"]
    parts = [
        count(plan["requirements"], "requirement"),
        count(plan["checks"], "check"),
        f"{plan['overlap']} at a time",
        count(plan["faults"], "fault"),
    ]
    estimate = f"about {seconds(planned['wall_s'])}" if planned["wall_s"] is not None else "no estimate"
    left = f"; {len(plan['left_out'])} left out" if plan["left_out"] else ""
    return f"plan: {', '.join(parts)}, {estimate}{left}"


def reconciliation_line(document: Json) -> str:
    """The promise and what became of it: a reader must see at a glance that nothing got lost."""
    got = document["plan"]["reconciliation"]
    text = (
        f"{count(got['rows_planned'], 'row')} planned, {got['rows_decided']} decided; "
        f"{count(got['checks_planned'], 'check')} planned, {got['checks_finished']} finished"
    )
    if got["unexpected"]:
        text += f", {len(got['unexpected'])} not in the plan"
    return text


def verdict_line(document: Json) -> str:
    summary = document["summary"]
    said = [f"{summary[verdict]} {verdict}" for verdict in reversed(Verdict) if summary[verdict]]
    return f"{' · '.join(said) or 'no rows'}: exit {summary['exit']}"


def outcome_line(document: Json) -> str:
    """What the exit code means, in this run's own numbers."""
    summary = document["summary"]
    said = []
    if summary["fail"]:
        said.append(f"{count(summary['fail'], 'row')} failed")
    if summary["fixed"]:
        said.append(f"{count(summary['fixed'], 'row')} listed as known now passing: mend the list")
    if open_rows := summary["inconclusive"] + summary["error"]:
        said.append(f"{count(open_rows, 'row')} could not be judged")
    if document["interrupted"]:
        said.append("the run did not reach its end")
    if not said:
        said.append("every row of the profile is decided and none failed" if summary["rows"] else "nothing was judged")
    return ", ".join(said)


def summary_lines(document: Json, width: int = WIDTH) -> list[str]:
    lines = [*_table(document), ""]
    if listed := list(_not_green(document, width)):
        lines += [*listed, ""]
    lines += [cut(line, width) for line in _facts(document)]
    return [*lines, verdict_line(document)]


def _table(document: Json) -> Iterator[str]:
    rows = document["requirements"]
    groups = dict.fromkeys(group_of(row["id"]) for row in rows)
    used = [verdict for verdict in reversed(Verdict) if document["summary"][verdict]]
    first = max([len("group"), *map(len, groups)])
    yield "  ".join([f"{'group':<{first}}", "rows", *used])
    for group in groups:
        mine = [row["verdict"] for row in rows if group_of(row["id"]) == group]
        cells = [_cell(mine.count(verdict), len(verdict)) for verdict in used]
        yield "  ".join([f"{group:<{first}}", f"{len(mine):>4}", *cells])
    if len(groups) > 1:
        totals = [_cell(document["summary"][verdict], len(verdict)) for verdict in used]
        yield "  ".join([f"{'all':<{first}}", f"{len(rows):>4}", *totals])


def _cell(number: int, width: int) -> str:
    return f"{number or '·':>{width}}"


def _not_green(document: Json, width: int) -> Iterator[str]:
    rows = [row for row in document["requirements"] if row["verdict"] not in GREEN]
    for verdict in Verdict:
        for row in (row for row in rows if row["verdict"] == verdict):
            yield cut(f"{row['verdict']:<14}  {row['id']:<12}  {visible(row['title'])}", width)
            if why := _why(row):
                yield cut(f"{'':<14}  {'':<12}  {visible(why)}", width)


def _why(row: Json) -> str:
    """The reason, and for what we could not see the one hook that would show it."""
    hooks = dict.fromkeys(part["hook"] for part in row["parts"] if part["hook"] and part["verdict"] == "not-observable")
    seen = (row["finding"] or {}).get("seen")
    reason = row["reason"].partition("\n")[0] or (f"seen {seen}" if seen is not None else "")
    return "; ".join(filter(None, [reason, *(f"would be seen with {hook}" for hook in hooks)]))


def _facts(document: Json) -> Iterator[str]:
    got = document["plan"]["reconciliation"]
    yield reconciliation_line(document)
    for check in got["missing"][:10]:
        yield f"  missing     {visible(check)}"
    for check in got["unexpected"][:10]:
        yield f"  unexpected  {visible(check)}"
    yield from (f"  {note}" for note in got["notes"])
    yield from (f"  left out    {left['id']}: {visible(left['reason'])}" for left in document["plan"]["left_out"])
    yield from (f"  left over   {visible(str(thing))}" for thing in document["leftovers"])
    yield _time_line(document)


def _time_line(document: Json) -> str:
    longest: dict[str, Any] | None = document["longest_check"]
    text = f"wall {seconds(document['wall_s'])} (planned {seconds(document['planned']['wall_s'])})"
    text += f", checks {seconds(document['sum_s'])} in all"
    if longest:
        text += f", longest {seconds(longest['duration_s'])}: {visible(longest['check'].rpartition('::')[2])}"
    return text


def check_line(check: Json, width: int = WIDTH) -> str:
    """One finished attempt: `  pass  AD-RATE-03  a burst across a window border is locked  6.1 s`."""
    ids = list(dict.fromkeys(item["id"] for item in check.get("verifies", [])))
    first = ids[0] if ids else "–"
    more = f" +{len(ids) - 1}" if len(ids) > 1 else ""
    again = "" if check.get("final", True) else "  (tried once more)"
    tail = f"{seconds(check.get('duration_s', 0.0))}{again}"
    room = max(width - 2 - 14 - 2 - 16 - 2 - len(tail) - 2, 10)
    title = cut(visible(check.get("title", "")), room)
    return f"  {check['verdict']:<12}  {pad(first + more, 14)}  {title}  {tail}"
