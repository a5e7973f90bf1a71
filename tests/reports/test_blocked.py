"""What blocks many checks is told once; a row's headline is its worst finding; what was left out makes it partial."""

import io
import json
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from holdfast.reports import allure, ctrf, html, junit
from holdfast.reports.model import fold_events
from holdfast.reports.summary import outcome_line, summary_lines, verdict_line
from holdfast.reports.terminal import Terminal
from holdfast.run.events import CheckFinished, DocumentFacts, Event, LeftOut
from tests.reports.streams import ended, finished, part, plan, row, started

CAUSE = "no admin calls"
REASON = "not observable without admin calls (PUT /admin/instances: 404)"
ROWS = [f"AD-ADMIT-{number:02}" for number in range(1, 31)]


def check(number: int) -> str:
    return f"admission/test_x.py::test_{number}"


def blocked_run() -> list[Event]:
    """Thirty rows with two checks each, all of which need a call that the target does not offer."""
    rows = [row(id_, part(1, [check(2 * n), check(2 * n + 1)])) for n, id_ in enumerate(ROWS)]
    checks = [
        finished(each, "not-observable", (id_, 1), reason=REASON, blocked_by=CAUSE)
        for n, id_ in enumerate(ROWS)
        for each in (check(2 * n), check(2 * n + 1))
    ]
    return [started(), plan(*rows), *checks, ended(2)]


def document(*events: Event) -> dict[str, Any]:
    return fold_events(events).to_json()


def test_a_cause_is_counted_once_with_all_that_it_blocks() -> None:
    (entry,) = document(*blocked_run())["blocked"]
    assert (entry["cause"], entry["reason"]) == (CAUSE, REASON)
    assert (len(entry["checks"]), entry["rows"]) == (60, ROWS)
    assert document(*blocked_run())["summary"]["exit"] == 2


def test_the_terminal_tells_it_once() -> None:
    said = "\n".join(summary_lines(document(*blocked_run())))
    assert said.count("blocked by: no admin calls (60 checks)") == 1
    assert said.count("PUT /admin/instances") == 1
    assert all(id_ in said for id_ in ROWS)
    assert "not-observable  AD-ADMIT" not in said


def test_a_broken_arrangement_prints_one_finding_for_all_that_it_blocks() -> None:
    reason = "arrangement: expected 200; seen 503 (judged by AD-QUEUE-01)"
    cause = "AD-QUEUE-01, which the arrangement rests on"
    checks = [
        finished(check(n), "inconclusive", (ROWS[n], 1), reason=reason, blocked_by=cause, seen="503") for n in range(5)
    ]
    out = io.StringIO()
    terminal = Terminal(Console(file=out, width=110), live=False)
    for event in [started(), plan(*(row(ROWS[n], part(1, [check(n)])) for n in range(5))), *checks, ended(2)]:
        terminal.handle(event)
    assert out.getvalue().count("  seen      503") == 1
    assert out.getvalue().count(f"blocked by: {cause} (5 checks)") == 1


def test_the_page_tells_it_once_and_leads_to_the_rows() -> None:
    page = html.render(document(*blocked_run())).partition('<script type="application/json"')[0]
    assert page.count("blocked by: no admin calls (60 checks)") == 1
    attention = page.partition('<div id="rows">')[0]
    assert attention.count(REASON) == 1
    assert attention.count('href="#AD-ADMIT-') == len(ROWS)


def test_the_other_formats_group_by_the_cause() -> None:
    results = document(*blocked_run())
    assert f'message="not-observable: blocked by: {CAUSE}; {REASON}"' in junit.render(results)
    assert 'value="blocked by: no admin calls (60 checks)"' in junit.render(results)
    report = ctrf.render(results)["results"]
    assert {test["extra"]["blocked_by"] for test in report["tests"]} == {CAUSE}
    assert report["summary"]["extra"]["blocked"][0]["cause"] == CAUSE
    labels = [json.loads(text)["labels"] for name, text in allure.render(results).items() if name.endswith(".json")]
    assert all({"name": "blocked by", "value": CAUSE} in each for each in labels)


def of_one_row(*checks: CheckFinished, **more: Any) -> dict[str, Any]:
    named = [each.check for each in checks]
    results = document(started(), plan(row("AD-RATE-03", part(1, named, **more))), *checks, ended(1))
    only: dict[str, Any] = results["requirements"][0]
    return only


ABSENT = finished(check(1), "fail", ("AD-RATE-03", 1), kind="absent", reason="nothing there", seen="nothing")
VIOLATES = finished(check(2), "fail", ("AD-RATE-03", 1), reason="a late answer", seen="late")
UNSAFE = finished(check(3), "fail", ("AD-RATE-03", 1), reason="two leaders", seen="two", unsafe=True)
SHARED = finished(check(4), "fail", ("AD-RATE-03", 1), ("AD-VER-01", 1), reason="another row's too", seen="shared")
BLOCKED = finished(check(5), "inconclusive", ("AD-RATE-03", 1), reason="arrangement: …", blocked_by="AD-VER-01")


@pytest.mark.parametrize(
    ("checks", "headline"),
    [
        ([ABSENT, VIOLATES, UNSAFE], UNSAFE),
        ([ABSENT, VIOLATES], VIOLATES),
        ([BLOCKED, ABSENT], ABSENT),
        ([SHARED, VIOLATES], VIOLATES),
        ([SHARED, ABSENT], SHARED),
    ],
)
def test_the_headline_is_the_worst_finding_and_never_the_first_in_order(
    checks: list[CheckFinished], headline: CheckFinished
) -> None:
    only = of_one_row(*checks)
    assert (only["verdict"], only["reason"]) == ("fail", headline.reason)
    assert only["finding"]["seen"] == headline.seen
    assert only["blocked_by"] is None


def test_of_several_repeats_the_unsafe_one_decides() -> None:
    again = replace(UNSAFE, check=VIOLATES.check, repeat=2)
    results = document(started(repeat=2), plan(row("AD-RATE-03", part(1, [VIOLATES.check]))), VIOLATES, again, ended(1))
    assert results["requirements"][0]["finding"]["seen"] == "two"


def test_a_row_of_which_checks_were_left_out_is_partial_and_names_them() -> None:
    left = [LeftOut(check(8), "over the budget of 4 s"), LeftOut(check(9), "over the budget of 4 s")]
    only = of_one_row(finished(check(1), "pass", ("AD-RATE-03", 1)), left_out=left)
    assert only["verdict"] == "partial"
    assert only["reason"] == (
        "part 1 not looked at in full: 2 of 3 checks left out (over the budget of 4 s): test_8, test_9"
    )


def test_a_row_with_a_failure_stays_failed_whatever_was_left_out() -> None:
    assert of_one_row(VIOLATES, left_out=[LeftOut(check(8), "not selected")])["verdict"] == "fail"


def test_a_part_of_which_one_check_could_not_see_is_partial() -> None:
    seen = finished(check(1), "pass", ("AD-RATE-03", 1))
    blind = finished(check(2), "not-observable", ("AD-RATE-03", 1), reason=REASON, blocked_by=CAUSE)
    only = of_one_row(seen, blind)
    assert (only["verdict"], only["reason"]) == ("partial", f"part 1 not looked at in full: test_2: {REASON}")


def test_a_part_that_was_left_out_whole_is_no_pass() -> None:
    rows = row("AD-RATE-03", part(1, [check(1)]), part(2, left_out=[LeftOut(check(2), "not selected")]))
    results = document(started(), plan(rows), finished(check(1), "pass", ("AD-RATE-03", 1)), ended())
    assert results["requirements"][0]["verdict"] == "partial"
    assert results["summary"]["exit"] == 0


def test_a_green_end_of_a_narrowed_run_says_so() -> None:
    rows = row("AD-RATE-03", part(1, [check(1)]))
    passed = finished(check(1), "pass", ("AD-RATE-03", 1))
    results = document(started(), plan(rows, narrowed=["--only AD-RATE-03"]), passed, ended())
    assert verdict_line(results) == "1 pass: exit 0, narrowed: --only AD-RATE-03"
    assert outcome_line(results) == ("every row looked at is decided and none failed, narrowed: --only AD-RATE-03")
    assert results["summary"]["narrowed"] == ["--only AD-RATE-03"]
    assert 'name="narrowed" value="--only AD-RATE-03"' in junit.render(results)


def test_every_failure_cites_the_lines_of_the_document_in_every_format() -> None:
    source = DocumentFacts("Character session admission", "someone/tilemud", "docs/admission.md", "abc")
    rows = row("AD-RATE-03", part(1, [VIOLATES.check]), document=source, origin="derived")
    results = document(started(), plan(rows), VIOLATES, ended(1))
    cited = (
        "lines 30-31 of Character session admission, someone/tilemud docs/admission.md (derived: it follows from them)"
    )
    assert cited in html.render(results)
    assert ctrf.render(results)["results"]["tests"][0]["extra"]["rests_on"] == cited
    (text,) = [text for name, text in allure.render(results).items() if name.endswith("result.json")]
    assert cited in json.loads(text)["description"]
    flat = " ".join(junit.render(results).split())
    assert f"rests on {cited}" in flat
