"""Drawn mutants in every report: their rate decides, and their diffs say what they are."""

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from holdfast.reports.files import write_all
from holdfast.reports.model import fold_events
from holdfast.reports.summary import group_of_mutant, outcome_line, summary_lines
from holdfast.reports.terminal import Terminal
from holdfast.reports.text import Json
from tests.reports.streams import CHANGE, RATE, STATE, drawn_mutants, drawn_run, finished, judged, lines, mutants


def document(*statuses: str) -> Json:
    return fold_events(drawn_run(*statuses)).to_json()


def test_the_rate_is_over_those_that_are_judged_and_not_equivalent() -> None:
    power = document()["summary"]["mutants"]["drawn"]
    assert (power["rate"], power["killed"], power["judged"], power["equivalent"]) == (0.5, 1, 2, 1)
    assert [dead["id"] for dead in power["stillborn"]] == ["drawn:7:2"]


@pytest.mark.parametrize(
    ("statuses", "code"),
    [
        (("killed", "killed"), 0),
        (("killed", "survived"), 1),
        (("survived", "survived"), 1),
        (("killed", "not-judged"), 2),
        (("excluded", "excluded"), 2),
    ],
)
def test_the_exit_code_is_that_of_the_rate(statuses: tuple[str, ...], code: int) -> None:
    assert fold_events(drawn_run(*statuses)).exit == code


@pytest.mark.parametrize(("survivors", "code"), [(2, 0), (3, 1)])
def test_nine_of_ten_are_enough(survivors: int, code: int) -> None:
    head, *_, end = drawn_run()
    planned = [replace(drawn_mutants()[0], id=f"drawn:7:{number}") for number in range(20)]
    became = [judged(each, "survived" if place < survivors else "killed") for place, each in enumerate(planned)]
    drawn = [replace(each, drawn=CHANGE) for each in became]
    assert fold_events([head, mutants(*planned), *drawn, end]).exit == code


def test_a_false_alarm_is_told_but_the_rate_decides() -> None:
    head, plan, *rest = drawn_run("killed", "killed")
    found = fold_events([head, plan, finished(STATE, "fail", ("AD-STATE-01", 1)), *rest])
    assert found.exit == 0
    assert "raised a false alarm" in outcome_line(found.to_json())


def test_the_summary_shows_the_power_and_the_diff_of_each_survivor() -> None:
    shown = summary_lines(document())
    assert shown[-1].startswith(
        "detection power 50.0% (1 of 2 drawn mutants killed, goal 90%): 1 equivalent, 1 stillborn"
    )
    assert "    +a <= <b>" in shown
    assert sum("@@" in line for line in shown) == 2  # the survivor and the equivalent one
    assert any(line.split()[:2] == ["stillborn", "drawn:7:2"] for line in shown)


def test_a_drawn_mutant_is_grouped_by_its_module_and_has_its_diff_in_every_report(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text(lines(drawn_run()))
    write_all(tmp_path)
    assert {group_of_mutant(mutant) for mutant in document()["mutants"]} == {"rules"}
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "+a &lt;= &lt;b&gt;" in page
    assert "Detection power" in page
    assert "mutants.rules" in (tmp_path / "junit.xml").read_text("utf-8")
    tests = json.loads((tmp_path / "ctrf.json").read_text("utf-8"))["results"]["tests"]
    assert tests[0]["extra"]["drawn"]["diff"] == CHANGE.diff
    described = [json.loads(path.read_text("utf-8")) for path in (tmp_path / "allure-results").glob("*-result.json")]
    assert any(CHANGE.diff in each.get("description", "") for each in described)


def test_any_check_catches_a_drawn_mutant_on_the_screen() -> None:
    out = io.StringIO()
    terminal = Terminal(Console(file=out, width=120, color_system=None), live=False)
    head, plan, *_ = drawn_run()
    for event in (head, plan, finished(RATE, "fail", ("AD-RATE-03", 1), variant="drawn:7:1")):
        terminal.handle(event)
    assert terminal._progress.caught == 1
