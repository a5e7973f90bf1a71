"""JUnit XML for the CI systems that read nothing else.

One test case is one requirement row, not one check: so a row that could not be looked at shows as skipped with its
reason instead of being absent. One suite is one group of the spec. What turns the exit code red is red here too:

    fail, fixed           failure
    error, inconclusive   error
    pass                  passed
    the rest              skipped, the verdict first in the message
"""

import xml.etree.ElementTree as ET
from collections.abc import Iterable

from holdfast.reports.finding import render_finding
from holdfast.reports.summary import group_of, verdict_line
from holdfast.reports.text import Json
from holdfast.verdict import Verdict

ELEMENT: dict[str, str] = dict.fromkeys(map(str, Verdict), "skipped") | {
    Verdict.PASS: "",
    Verdict.FAIL: "failure",
    Verdict.FIXED: "failure",
    Verdict.ERROR: "error",
    Verdict.INCONCLUSIVE: "error",
}


def render(document: Json) -> str:
    rows = document["requirements"]
    durations = {check["check"]: check["duration_s"] for check in document["checks"]}
    root = ET.Element("testsuites", {"name": "holdfast", **_counts(rows), "time": _time(document["wall_s"])})
    for group in dict.fromkeys(group_of(row["id"]) for row in rows):
        mine = [row for row in rows if group_of(row["id"]) == group]
        _suite(root, group, mine, document, durations)
    if not rows:
        _empty(root, document)
    ET.indent(root, " ")
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _suite(root: ET.Element, group: str, rows: list[Json], document: Json, durations: dict[str, float]) -> None:
    total = sum(durations[check] for row in rows for check in row["checks"])
    suite = ET.SubElement(root, "testsuite", {"name": group, **_counts(rows), "time": _time(total)})
    if document["started"]:
        suite.set("timestamp", document["started"])
    properties = ET.SubElement(suite, "properties")
    for name, value in _properties(document):
        ET.SubElement(properties, "property", {"name": name, "value": str(value)})
    for row in rows:
        _case(suite, group, row, sum(durations[check] for check in row["checks"]))


def _case(suite: ET.Element, group: str, row: Json, duration: float) -> None:
    named = {"classname": f"{row['spec']}.{group}", "name": f"{row['id']} {row['title']}"}
    case = ET.SubElement(suite, "testcase", {**named, "time": _time(duration)})
    if element := ELEMENT[row["verdict"]]:
        message = f"{row['verdict']}: {row['reason'] or row['title']}"
        outcome = ET.SubElement(case, element, {"message": message, "type": row["kind"] or row["verdict"]})
        if row["finding"]:
            outcome.text = "\n" + render_finding([row], row["finding"], whole=True) + "\n"


def _empty(root: ET.Element, document: Json) -> None:
    """A run without rows has judged nothing; an empty file would read as green."""
    root.set("tests", "1")
    root.set("errors", "1")
    counts = {"tests": "1", "failures": "0", "errors": "1", "skipped": "0"}
    suite = ET.SubElement(root, "testsuite", {"name": "holdfast", **counts})
    case = ET.SubElement(suite, "testcase", {"classname": "holdfast", "name": "the run has rows", "time": "0.000"})
    ET.SubElement(case, "error", {"message": verdict_line(document), "type": "error"})


def _counts(rows: Iterable[Json]) -> dict[str, str]:
    elements = [ELEMENT[row["verdict"]] for row in rows]
    return {
        "tests": str(len(elements)),
        "failures": str(elements.count("failure")),
        "errors": str(elements.count("error")),
        "skipped": str(elements.count("skipped")),
    }


def _properties(document: Json) -> Iterable[tuple[str, object]]:
    yield "run_id", document["run_id"]
    yield "target", document["target"].get("name", "")
    yield "profile", document["profile"]
    yield "time_scale", document["time_scale"]
    yield "seed", document["seed"]
    yield "command", document["command"]


def _time(value: float | None) -> str:
    return f"{value or 0.0:.3f}"
