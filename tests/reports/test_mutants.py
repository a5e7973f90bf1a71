"""The kill matrix, from the stream of a mutant run to every report."""

import io
import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from rich.console import Console

from holdfast.reports import allure, ctrf, html, junit
from holdfast.reports.files import write_all
from holdfast.reports.model import Fold, StreamError, fold_events
from holdfast.reports.summary import outcome_line, reconciliation_line
from holdfast.reports.terminal import Terminal
from holdfast.reports.text import Json
from holdfast.run.events import CheckWaiting, Event, MutantPlan
from tests.reports.streams import (
    EXCLUDED,
    HOSTILE,
    KILLED,
    MUTANTS,
    OPEN,
    RATE,
    STATE,
    SURVIVOR,
    begun,
    ended,
    finished,
    judged,
    lines,
    mutant_run,
    mutants,
    small_run,
    started,
)
from tests.reports.test_html import Page

BEGIN = started(purpose="mutants")
MUTANT_RUN = """\
holdfast 0.1.0  admission  target mine 2.3  profile control  time scale 0.2  seed 7
plan: 4 mutants, 3 checks, 24 at a time, about 20.0 s
false alarm on a clean copy:
  fail          AD-STATE-01     a second node sees the same queue  6.1 s

a second node sees the same queue                                                                         fail
  expected  429 RATE_LIMITED on the 6th attempt (5 failures within 6.1 s)
  or        503 during an outage
  seen      200 success
  reason    late
  timing    rate_window (seed): budget 12.0 s ± 400 ms, observed 13.100 to 13.200 s (missed)
     +0.000  → POST /instances/i1/connect  clientBuild=stale        ← 200 failed VERSION_MISMATCH  remaining 4
     +0.080  ! link redis cut  {"bytes": 312}
     +6.087  → POST /instances/i1/connect  clientBuild=dev-build    ← 200 success
  repeat    holdfast run admission --only AD-RATE-03 --target mine.toml


  killed     AD-RATE-03/1   One counter key per window period.
                            test_a_burst_across_a_window_border_is_locked
  survived   AD-RATE-03/2   Failures never leave the window.
  excluded   AD-STATE-01/1  Each node keeps its own queue.
                            needs a second machine
  not-judged AD-DRAIN-02/1  A drain never ends.
                            inconclusive: machine stalled
  false alarm on a clean copy: conformance/admission/test_state.py::test_a_second_node_sees_the_same_queue: late
wall 7.0 s (planned 20.0 s), checks 21.3 s in all, longest 6.1 s: test_a_burst_across_a_window_border_is_lock…
4 mutants: 1 killed, 1 survived, 1 excluded, 1 not judged; 6 of 9 violations covered; 2 clean runs, 1 false alarms
"""


def folded(*events: Event) -> Json:
    return fold_events(events).to_json()


def statuses(document: Json) -> dict[str, str]:
    return {mutant["id"]: mutant["status"] for mutant in document["mutants"]}


def all_killed(**more: object) -> list[Event]:
    return [BEGIN, mutants(MUTANTS[0]), judged(MUTANTS[0], "killed", by=[RATE]), ended(0, **more)]


def test_each_mutant_is_there_with_what_became_of_it() -> None:
    document = folded(*mutant_run())
    assert statuses(document) == {KILLED: "killed", SURVIVOR: "survived", EXCLUDED: "excluded", OPEN: "not-judged"}
    assert document["mutants"][0] == {
        "id": KILLED,
        "requirement": "AD-RATE-03",
        "violation": "One counter key per window period.",
        "status": "killed",
        "by": [RATE],
        "also": ["AD-RATE-04", "AD-FLAP-01"],
        "declared": ["AD-RATE-04"],
        "reason": "",
        "drawn": None,
        "duration_s": 6.1,
    }
    assert [mutant["duration_s"] for mutant in document["mutants"]] == [6.1, 2.0, 0.0, 1.0]


def test_the_summary_counts_mutants_clean_copies_and_violations() -> None:
    document = folded(*mutant_run())
    assert document["summary"]["mutants"] == {
        "killed": 1,
        "survived": 1,
        "excluded": 1,
        "not-judged": 1,
        "mutants": 4,
        "clean_runs": 2,
        "false_alarms": {STATE: "late"},
        "violations": 9,
        "covered_violations": 6,
        "drawn": None,
    }
    assert (document["summary"]["check_runs"], document["sum_s"]) == (6, pytest.approx(21.3))
    assert (document["requirements"], document["purpose"]) == ([], "mutants")


def test_a_check_that_failed_on_a_clean_copy_keeps_its_evidence() -> None:
    (alarm,) = folded(*mutant_run())["checks"]
    assert (alarm["check"], alarm["verdict"]) == (STATE, "fail")
    assert alarm["attempts"][0]["seen"] == "200 success"


def test_a_run_of_another_purpose_has_no_matrix() -> None:
    document = folded(*small_run())
    assert (document["purpose"], document["mutants"], document["summary"]["mutants"]) == ("conformance", [], None)


@pytest.mark.parametrize("length", range(1, 10))
def test_a_mutant_that_was_planned_and_never_judged_is_not_judged(length: int) -> None:
    document = folded(*mutant_run()[:length])
    open_ones = [mutant for mutant in document["mutants"] if mutant["status"] == "not-judged"]
    assert len(open_ones) == (3 if length > 1 else 0)
    assert {mutant["reason"] for mutant in open_ones} <= {"run ended before"}
    assert document["summary"]["exit"] == 2
    assert statuses(document).get(EXCLUDED, "excluded") == "excluded"


def test_a_mutant_outside_the_plan_is_not_lost() -> None:
    assert statuses(folded(BEGIN, mutants(), judged(MUTANTS[0], "killed"))) == {KILLED: "killed"}


@pytest.mark.parametrize(
    ("became", "code"),
    [
        (["killed", "killed"], 0),
        (["killed", "excluded"], 0),
        (["killed", "survived"], 1),
        (["killed", "not-judged"], 2),
        (["survived", "not-judged"], 1),
        ([], 2),
    ],
)
def test_the_exit_code_follows_from_the_mutants(became: list[str], code: int) -> None:
    pairs = list(zip(MUTANTS, became, strict=False))
    events = [BEGIN, mutants(*(mutant for mutant, _ in pairs)), *(judged(mutant, status) for mutant, status in pairs)]
    assert folded(*events, ended(exit=None))["summary"]["exit"] == code


@pytest.mark.parametrize(
    ("verdict", "code"), [("pass", 0), ("fail", 1), ("warn", 1), ("error", 0), ("inconclusive", 0)]
)
def test_a_failure_or_warning_on_a_clean_copy_is_a_false_alarm(verdict: str, code: int) -> None:
    events = [*all_killed()[:-1], finished(RATE, verdict, ("AD-RATE-03", 1), reason="why"), ended(exit=None)]
    document = folded(*events)
    assert document["summary"]["mutants"]["false_alarms"] == ({RATE: "why"} if code else {})
    assert document["summary"]["exit"] == code


def test_an_interrupted_run_is_not_green() -> None:
    assert fold_events(all_killed()).exit == 0
    assert fold_events(all_killed(interrupted="SIGINT")).exit == 2
    assert fold_events(all_killed()[:-1]).exit == 2


def test_an_exit_code_that_the_mutants_contradict_is_named() -> None:
    notes = folded(*mutant_run()[:-1], ended(0))["plan"]["reconciliation"]["notes"]
    assert notes == ["The run ended with exit 0, but its mutants call for 1."]


def test_an_unknown_status_is_refused() -> None:
    with pytest.raises(StreamError, match="has the status 'wounded'"):
        Fold().add(judged(MUTANTS[0], "wounded"))


def test_one_line_says_what_the_exit_code_means() -> None:
    assert outcome_line(folded(*mutant_run())) == (
        "1 mutant survived, 1 mutant could not be judged, 1 check raised a false alarm on a clean copy"
    )
    assert outcome_line(folded(*all_killed())) == "no mutant survived and no check raised a false alarm"
    assert outcome_line(folded(BEGIN, mutants(), ended(2))) == "nothing was judged"
    assert reconciliation_line(folded(*mutant_run())) == "4 mutants planned, 3 judged"


def shown(events: list[Event], *, on_a_terminal: bool = False) -> str:
    out = io.StringIO()
    terminal = Terminal(Console(file=out, width=110, force_terminal=on_a_terminal), live=on_a_terminal)
    for event in events:
        terminal.handle(event)
    terminal.close()
    return out.getvalue()


def test_plain_output_of_a_mutant_run() -> None:
    assert shown(mutant_run()) == MUTANT_RUN


def test_a_run_without_flaw_names_what_killed_each_mutant() -> None:
    text = shown(all_killed())
    assert "  killed     AD-RATE-03/1   One counter key per window period.\n" in text
    assert "                            test_a_burst_across_a_window_border_is_locked\n" in text
    assert text.endswith(
        "1 mutants: 1 killed, 0 survived, 0 excluded; 6 of 9 violations covered; 0 clean runs, 0 false alarms\n"
    )


def test_an_interrupted_run_says_so() -> None:
    text = shown([BEGIN, mutants(MUTANTS[0]), ended(2, interrupted="SIGINT", leftovers=["/tmp/x"])])  # noqa: S108 - a name, not a file
    assert "  not-judged AD-RATE-03/1   One counter key per window period.\n" in text
    assert "  interrupted: SIGINT\n  left over   /tmp/x\n" in text


def test_the_live_screen_counts_mutants_and_names_the_one_at_work() -> None:
    clock = iter([0.0, 0.0])
    terminal = Terminal(Console(file=io.StringIO()), live=False, clock=lambda: next(clock, 4.0))
    beside = finished(STATE, "fail", ("AD-STATE-01", 1), variant=SURVIVOR)
    clean = [begun(STATE), finished(STATE, "warn", ("AD-STATE-01", 1))]
    waiting = CheckWaiting(at=1.0, check=RATE, variant=OPEN, waiting_for="the window to roll", until_s=9.0)
    for event in [
        *mutant_run()[:2],
        *mutant_run()[4:6],
        beside,
        *clean,
        begun(RATE, variant=OPEN),
        begun(RATE),
        waiting,
    ]:
        terminal.handle(event)
    out = io.StringIO()
    Console(file=out, width=100).print(terminal._progress)
    text = out.getvalue()
    assert "2/3 mutants tried, 1 caught, 1 false alarm" in text
    (line,) = [line for line in text.splitlines() if "the window to roll" in line]
    assert line.startswith(f"  {OPEN}")


def test_what_a_check_finds_in_a_mutant_is_not_printed() -> None:
    text = shown([BEGIN, mutants(MUTANTS[0]), finished(RATE, "fail", ("AD-RATE-03", 1), variant=KILLED)])
    assert len(text.splitlines()) == 2


def test_junit_has_one_case_a_mutant_and_one_a_false_alarm() -> None:
    root = ET.fromstring(junit.render(folded(*mutant_run())))  # noqa: S314 - what this package wrote
    assert (root.get("tests"), root.get("failures"), root.get("errors"), root.get("skipped")) == ("5", "2", "1", "1")
    suites = {suite.get("name"): list(suite.iter("testcase")) for suite in root.iter("testsuite")}
    assert [[element.tag for element in case] for case in suites["mutants"]] == [
        [],
        ["failure"],
        ["skipped"],
        ["error"],
    ]
    assert suites["mutants"][1].get("name") == "AD-RATE-03/2 Failures never leave the window."
    assert suites["mutants"][1].get("classname") == "mutants.AD-RATE"
    (alarm,) = suites["clean copies"]
    failure = alarm.find("failure")
    assert failure is not None
    assert failure.get("message") == "false alarm on a clean copy: late"
    assert "seen      200 success" in (failure.text or "")


def test_ctrf_has_one_test_a_mutant_and_one_a_false_alarm() -> None:
    report = ctrf.render(folded(*mutant_run()))["results"]
    became = {test["name"].split()[0]: (test["status"], test["rawStatus"]) for test in report["tests"]}
    assert became == {
        KILLED: ("passed", "killed"),
        SURVIVOR: ("failed", "survived"),
        EXCLUDED: ("skipped", "excluded"),
        OPEN: ("other", "not-judged"),
        STATE: ("failed", "fail"),
    }
    assert (report["summary"]["tests"], report["summary"]["failed"]) == (5, 2)
    assert report["summary"]["extra"]["mutants"]["clean_runs"] == 2
    assert all({"name", "status", "duration"} <= test.keys() for test in report["tests"])
    assert "mutants" not in ctrf.render(folded(*small_run()))["results"]["summary"]["extra"]


@pytest.mark.parametrize("verdict", ["fail", "warn"])
def test_allure_has_one_test_a_mutant_and_one_a_false_alarm(verdict: str) -> None:
    alarm = finished(STATE, verdict, ("AD-STATE-01", 1))
    document = folded(*(alarm if getattr(event, "check", "") == STATE else event for event in mutant_run()))
    results = [json.loads(text) for name, text in allure.render(document).items() if name.endswith("-result.json")]
    assert {result["fullName"]: result["status"] for result in results} == {
        KILLED: "passed",
        SURVIVOR: "failed",
        EXCLUDED: "skipped",
        OPEN: "broken",
        STATE: "failed",
    }
    survivor = next(result for result in results if result["fullName"] == SURVIVOR)
    assert {"name": "mutant", "value": "survived"} in survivor["labels"]
    assert len({result["uuid"] for result in results}) == 5


def test_the_page_shows_the_matrix_by_group() -> None:
    text = html.render(folded(*mutant_run()))
    page = Page(text)
    assert page.stack == []
    assert [(row["data-id"], row["data-verdict"]) for row in page.with_class("mutant")] == [
        (KILLED, "killed"),
        (SURVIVOR, "survived"),
        (EXCLUDED, "excluded"),
        (OPEN, "not-judged"),
    ]
    buttons = [button["data-verdict"] for button in page.with_class("filter")]
    assert buttons == ["killed", "excluded", "not-judged", "survived"]
    assert [cell["href"] for cell in page.with_class("cell")] == [f"#{mutant.id}" for mutant in MUTANTS]
    for wanted in ("Kill matrix", "kill matrix of", "2 mutants, 1 killed", "needs a second machine", "False alarms"):
        assert wanted in text
    assert "This run has no rows" not in text
    assert len(page.with_class("declared")) == 1


def test_the_page_leaves_out_what_was_not_looked_at() -> None:
    assert "Also fell" in html.render(folded(*mutant_run()))
    text = html.render(folded(*all_killed()))
    assert "Also fell" not in text
    assert "<code>--all-checks</code> runs them" in text
    assert "Needs attention" not in text


def test_the_page_of_a_conformance_run_knows_nothing_of_mutants() -> None:
    text = html.render(folded(*small_run())).partition("</style>")[2].partition('<script type="application/json"')[0]
    assert "mutant" not in text.lower()


@pytest.mark.parametrize("events", [mutant_run(), mutant_run()[:3], [BEGIN]])
def test_the_page_is_whole_and_asks_for_nothing_wherever_the_stream_ends(events: list[Event]) -> None:
    page = Page(html.render(folded(*events)))
    ids = [attrs["id"] for _, attrs in page.elements if "id" in attrs]
    assert page.stack == []
    assert len(ids) == len(set(ids))
    for _, attrs in page.elements:
        assert "style" not in attrs
        assert (attrs.get("href") or "#").startswith("#")


def test_hostile_words_of_a_mutant_run_become_visible(tmp_path: Path) -> None:
    mutant = MutantPlan(KILLED, "AD-RATE-03", HOSTILE)
    alarm = finished(STATE, "fail", ("AD-STATE-01", 1), reason=HOSTILE, title=HOSTILE, seen=HOSTILE)
    events = [BEGIN, mutants(mutant), alarm, judged(mutant, "survived", reason=HOSTILE, by=[HOSTILE]), ended(1)]
    (tmp_path / "events.jsonl").write_text(lines(events), "utf-8")
    assert write_all(tmp_path).exit == 1
    for path in (path for path in tmp_path.rglob("*") if path.name not in {"events.jsonl", "report.html"}):
        assert path.is_dir() or "\x1b" not in path.read_text("utf-8")
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "<script>alert(1)" not in page
    assert all(char.isprintable() or char == "\n" for char in shown(events))
