"""The reports of load campaigns: `load.json`, and what is made from it: one HTML file, JUnit and Allure.

One test case is one finding of a campaign, in the suite of that campaign, with the same colours as in every other
report; one Allure test is one campaign with a step for each finding.
"""

import json
import uuid
import xml.etree.ElementTree as ET
from pathlib import Path

from jsonschema import Draft202012Validator
from markupsafe import Markup

from holdfast.reports.allure import STATUS
from holdfast.reports.ctrf import epoch_ms
from holdfast.reports.html import SIGNS, asset, environment, policy
from holdfast.reports.junit import ELEMENT
from holdfast.reports.load_plots import plots
from holdfast.reports.text import Json

LOAD = "load.json"
SCHEMA_FILE = Path(__file__).parent / "load.schema.json"


def schema() -> Json:
    read: Json = json.loads(SCHEMA_FILE.read_text("utf-8"))
    return read


def problems(document: Json) -> list[str]:
    """Returns where a document is not what its schema says."""
    found = Draft202012Validator(schema()).iter_errors(document)
    return [f"{'/'.join(map(str, each.absolute_path))}: {each.message}" for each in found]


def write(document: Json, folder: Path) -> None:
    """Writes every report of these campaigns."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / LOAD).write_text(json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False) + "\n", "utf-8")
    (folder / "load.html").write_text(html(document), "utf-8")
    (folder / "junit.xml").write_text(junit(document), "utf-8")
    _write_allure(document, folder / "allure-results")


def html(document: Json) -> str:
    style = asset("report.css") + asset("load.css")
    return (
        environment()
        .get_template("load.html.j2")
        .render(
            doc=document,
            style=Markup(style),  # noqa: S704 - this package's own files
            policy=policy(style, ""),
            plots={campaign["id"]: plots(campaign) for campaign in document["campaigns"]},
            signs=SIGNS,
        )
    )


def junit(document: Json) -> str:
    root = ET.Element("testsuites", {"name": f"holdfast load {document['spec']}"})
    for campaign in document["campaigns"]:
        cases = [_case(campaign, finding) for finding in campaign["findings"]]
        counts = {
            "tests": str(len(cases)),
            **{f"{kind}s": str(sum(case.find(kind) is not None for case in cases)) for kind in ("failure", "error")},
            "skipped": str(sum(case.find("skipped") is not None for case in cases)),
        }
        named = {"name": f"{campaign['id']} {campaign['title']}", "time": f"{campaign['wall_s']:.3f}"}
        suite = ET.SubElement(root, "testsuite", {**named, "timestamp": document["started"], **counts})
        suite.extend(cases)
    ET.indent(root, " ")
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _case(campaign: Json, finding: Json) -> ET.Element:
    case = ET.Element("testcase", {"classname": campaign["id"], "name": finding["what"], "time": "0.000"})
    if element := ELEMENT[finding["verdict"]]:
        message = f"{finding['verdict']}: {finding['reason'] or finding['seen']}"
        outcome = ET.SubElement(case, element, {"message": message, "type": finding["verdict"]})
        outcome.text = f"\nexpected  {finding['expected']}\nseen      {finding['seen']}\n"
    return case


def _write_allure(document: Json, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*-result.json"):
        old.unlink()
    start = epoch_ms(document["started"])
    for campaign in document["campaigns"]:
        result = _allure(document, campaign, start)
        (folder / f"{result['uuid']}-result.json").write_text(json.dumps(result, ensure_ascii=False), "utf-8")


def _allure(document: Json, campaign: Json, start: int) -> Json:
    name = f"{document['spec']} {campaign['id']}"
    stop = start + int(1000 * campaign["wall_s"])
    times = {"start": start, "stop": stop, "stage": "finished"}
    details = {"message": campaign["reason"]} if campaign["reason"] else {}
    return {
        "uuid": str(uuid.uuid4()),
        "historyId": str(uuid.uuid5(uuid.NAMESPACE_OID, f"holdfast load {name}")),
        "name": f"{campaign['id']} {campaign['title']}",
        "fullName": name,
        "description": campaign["story"],
        "status": STATUS[campaign["verdict"]],
        "statusDetails": details,
        "labels": [
            {"name": "suite", "value": f"load {document['spec']}"},
            {"name": "verdict", "value": campaign["verdict"]},
        ],
        "steps": [
            {
                "name": f"{finding['what']}: expected {finding['expected']}, seen {finding['seen']}",
                "status": STATUS[finding["verdict"]],
                **times,
            }
            for finding in campaign["findings"]
        ],
        **times,
    }
