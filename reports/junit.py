"""JUnit XML for the CI systems that read nothing else.

One test case is one requirement row, not one check: so a row that could not be looked at shows as skipped with its
reason instead of being absent. One suite is one group of the spec. What turns the exit code red is red here too:

    fail, fixed                           failure
    error, inconclusive, not-observable   error
    pass                                  passed
    the rest                              skipped, the verdict first in the message

A row that something kept from being judged has that cause first in its message, in the same words for all such rows.

In a run of mutants one test case is one mutant, all of them in the suite `mutants`; each check that failed on a clean
copy is a failure in the suite `clean copies`.

    survived              failure
    not-judged            error
    excluded              skipped
    killed                passed
"""

import xml.etree.ElementTree as ET
from collections.abc import Iterable

from holdfast.reports.blocked import blocked_line
from holdfast.reports.finding import citation, render_finding
from holdfast.reports.summary import alarm_of, group_of, group_of_mutant, mutant_name, verdict_line
from holdfast.reports.text import Json
from holdfast.spec.verdict import Verdict

ELEMENT: dict[str, str] = dict.fromkeys(map(str, Verdict), "skipped") | {
    Verdict.PASS: "",
    Verdict.FAIL: "failure",
    Verdict.FIXED: "failure",
    Verdict.ERROR: "error",
    Verdict.INCONCLUSIVE: "error",
    Verdict.NOT_OBSERVABLE: "error",
}
OF_A_MUTANT = {"killed": "", "survived": "failure", "not-judged": "error", "excluded": "skipped"}


def render(document: Json) -> str:
    rows, mutants = document["requirements"], document["mutants"]
    alarms = document["checks"] if mutants else []
    durations = {check["check"]: check["duration_s"] for check in document["checks"]}
    elements = [*map(_element, rows), *map(_element_of_mutant, mutants), *("failure" for _ in alarms)]
    root = ET.Element("testsuites", {"name": "holdfast", **_counts(elements), "time": _time(document["wall_s"])})
    for group in dict.fromkeys(group_of(row["id"]) for row in rows):
        mine = [row for row in rows if group_of(row["id"]) == group]
        total = sum(durations[check] for row in mine for check in row["checks"])
        suite = _suite(root, group, map(_element, mine), total, document)
        for row in mine:
            _case(suite, group, row, sum(durations[check] for check in row["checks"]))
    if mutants:
        _mutants(root, document)
    if alarms:
        _alarms(root, document)
    if not rows and not mutants:
        _empty(root, document)
    ET.indent(root, " ")
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _suite(root: ET.Element, name: str, elements: Iterable[str], total: float, document: Json) -> ET.Element:
    suite = ET.SubElement(root, "testsuite", {"name": name, **_counts(elements), "time": _time(total)})
    if document["started"]:
        suite.set("timestamp", document["started"])
    properties = ET.SubElement(suite, "properties")
    for key, value in _properties(document):
        ET.SubElement(properties, "property", {"name": key, "value": str(value)})
    return suite


def _case(suite: ET.Element, group: str, row: Json, duration: float) -> None:
    named = {"classname": f"{row['spec']}.{group}", "name": f"{row['id']} {row['title']}"}
    case = ET.SubElement(suite, "testcase", {**named, "time": _time(duration)})
    if element := _element(row):
        blocked = f"blocked by: {row['blocked_by']}; " if row["blocked_by"] else ""
        message = f"{row['verdict']}: {blocked}{row['reason'] or row['title']}"
        outcome = ET.SubElement(case, element, {"message": message, "type": row["kind"] or row["verdict"]})
        if row["finding"]:
            outcome.text = "\n" + render_finding([row], row["finding"], whole=True) + "\n"
        elif cited := citation(row):
            outcome.text = f"\nrests on {cited}\n"


def _mutants(root: ET.Element, document: Json) -> None:
    mutants = document["mutants"]
    total = sum(mutant["duration_s"] for mutant in mutants)
    suite = _suite(root, "mutants", map(_element_of_mutant, mutants), total, document)
    for mutant in mutants:
        named = {"classname": f"mutants.{group_of_mutant(mutant)}", "name": mutant_name(mutant)}
        case = ET.SubElement(suite, "testcase", {**named, "time": _time(mutant["duration_s"])})
        if element := _element_of_mutant(mutant):
            message = f"{mutant['status']}: {mutant['reason'] or mutant['violation']}"
            ET.SubElement(case, element, {"message": message, "type": mutant["status"]})


def _alarms(root: ET.Element, document: Json) -> None:
    checks = document["checks"]
    total = sum(check["duration_s"] for check in checks)
    suite = _suite(root, "clean copies", ("failure" for _ in checks), total, document)
    for check in checks:
        named = {"classname": "clean copies", "name": check["check"]}
        case = ET.SubElement(suite, "testcase", {**named, "time": _time(check["duration_s"])})
        message = f"false alarm on a clean copy: {check['reason'] or check['title']}"
        failure = ET.SubElement(case, "failure", {"message": message, "type": "false alarm"})
        failure.text = "\n" + render_finding([], alarm_of(check), whole=True) + "\n"


def _empty(root: ET.Element, document: Json) -> None:
    """A run without rows has judged nothing; an empty file would read as green."""
    root.set("tests", "1")
    root.set("errors", "1")
    counts = {"tests": "1", "failures": "0", "errors": "1", "skipped": "0"}
    suite = ET.SubElement(root, "testsuite", {"name": "holdfast", **counts})
    case = ET.SubElement(suite, "testcase", {"classname": "holdfast", "name": "the run has rows", "time": "0.000"})
    ET.SubElement(case, "error", {"message": verdict_line(document), "type": "error"})


def _element(row: Json) -> str:
    return ELEMENT[row["verdict"]]


def _element_of_mutant(mutant: Json) -> str:
    return OF_A_MUTANT[mutant["status"]]


def _counts(elements: Iterable[str]) -> dict[str, str]:
    seen = list(elements)
    return {
        "tests": str(len(seen)),
        "failures": str(seen.count("failure")),
        "errors": str(seen.count("error")),
        "skipped": str(seen.count("skipped")),
    }


def _properties(document: Json) -> Iterable[tuple[str, object]]:
    yield "run_id", document["run_id"]
    yield "target", document["target"].get("name", "")
    yield "profile", document["profile"]
    yield "time_scale", document["time_scale"]
    yield "seed", document["seed"]
    yield "command", document["command"]
    if narrowed := document["summary"].get("narrowed"):
        yield "narrowed", ", ".join(narrowed)
    for entry in document.get("blocked", []):
        yield "blocked", blocked_line(entry)


def _time(value: float | None) -> str:
    return f"{value or 0.0:.3f}"
