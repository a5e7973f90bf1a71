import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from holdfast.check.evidence import JudgedTiming, TranscriptLine
from holdfast.reports import allure, ctrf, junit
from holdfast.reports.files import read_events, read_results, write_all
from holdfast.reports.index import forget_all
from holdfast.reports.model import StreamError, fold_events
from holdfast.reports.text import Json
from holdfast.run.events import CheckFinished, Event, TargetFacts
from tests.reports.streams import (
    HOSTILE,
    RATE,
    ended,
    finished,
    hostile_run,
    lines,
    mutant_run,
    part,
    plan,
    row,
    small_run,
    started,
)


def stream(folder: Path, events: list[Event], tail: str = "") -> Path:
    path = folder / "events.jsonl"
    path.write_text(lines(events) + tail, "utf-8")
    return path


def parsed(xml: str) -> ET.Element:
    return ET.fromstring(xml)  # noqa: S314 - what this package wrote


def test_files_carry_every_line_of_a_transcript_to_its_end(tmp_path: Path) -> None:
    long = f'200 {{"padding":"{"x" * 300}","suspended":false}}'
    told = [TranscriptLine(1.0, "→", "GET /a"), TranscriptLine(2.0, "←", long)]
    rows = plan(row("AD-RATE-03", part(1, [RATE]), text="A text that is as long as it has to be. " * 6 + "The end."))
    failed = finished(RATE, "fail", ("AD-RATE-03", 1), transcript=told, expected=["a"], seen="b")
    stream(tmp_path, [started(), rows, failed, ended(1)])
    write_all(tmp_path)
    attached = "".join(path.read_text("utf-8") for path in (tmp_path / "allure-results").glob("*-attachment.txt"))
    results = "".join(path.read_text("utf-8") for path in (tmp_path / "allure-results").glob("*-result.json"))
    junit_text = "".join(parsed((tmp_path / "junit.xml").read_text("utf-8")).itertext())
    trace = json.loads((tmp_path / "ctrf.json").read_text("utf-8"))["results"]["tests"][0]["trace"]
    for text in (attached, junit_text, trace, json.loads(results)["statusDetails"]["trace"]):
        assert long in text
    for text in (junit_text, trace):
        assert "The end." in text


def test_a_torn_last_line_is_ignored(tmp_path: Path) -> None:
    path = stream(tmp_path, small_run(), '{"event": "run.fin')
    assert list(read_events(path)) == small_run()


def test_a_last_line_without_line_feed_counts_when_it_is_whole(tmp_path: Path) -> None:
    path = stream(tmp_path, small_run()[:-1], lines(small_run()[-1:]).rstrip("\n"))
    assert list(read_events(path)) == small_run()


def test_a_broken_line_in_the_middle_is_an_error_that_names_the_place(tmp_path: Path) -> None:
    path = stream(tmp_path, small_run()[:2], "{oops\n" + lines([ended()]))
    with pytest.raises(StreamError, match=r"events\.jsonl, line 3: not a JSON object"):
        list(read_events(path))


def test_a_claim_without_an_id_is_an_error_that_names_the_place(tmp_path: Path) -> None:
    broken = {"event": "check.finished", "check": RATE, "verdict": "pass", "verifies": [{"part": 1}]}
    with pytest.raises(StreamError, match=r"events\.jsonl, line 2: .*'id'\. No run writes this"):
        list(read_events(stream(tmp_path, [started()], json.dumps(broken) + "\n")))


def test_kinds_and_fields_of_a_newer_version_are_skipped(tmp_path: Path) -> None:
    newer = json.dumps({"event": "check.dreamt", "check": RATE}) + "\n" + json.dumps({"no": "event"}) + "\n"
    known = lines([ended()]).replace('"exit": 0', '"exit": 0, "mood": "good"')
    assert list(read_events(stream(tmp_path, [started()], newer + known))) == [started(), ended()]


def test_fields_that_a_line_lacks_have_their_usual_value(tmp_path: Path) -> None:
    short = {"event": "check.finished", "check": RATE, "verdict": "pass", "timings": [{"name": "grace"}]}
    path = stream(tmp_path, [started()], json.dumps(short) + "\n")
    usual = CheckFinished(check=RATE, verdict="pass", timings=[JudgedTiming(name="grace")])
    assert list(read_events(path)) == [started(), usual]
    (check,) = fold_events(read_events(path)).to_json()["checks"]
    assert check["title"] == "a burst across a window border is locked"
    assert check["attempts"][0]["timings"][0]["observed_s"] is None


def test_a_stream_that_is_read_gives_the_results_of_the_events_themselves(tmp_path: Path) -> None:
    for events in (small_run(), hostile_run(), mutant_run()):
        assert fold_events(read_events(stream(tmp_path, events))).to_json() == fold_events(events).to_json()


def test_bytes_that_are_no_utf8_hide_nothing(tmp_path: Path) -> None:
    path = stream(tmp_path, [started()])
    path.write_bytes(path.read_bytes().replace(b'"mine"', b'"mi\xffne"'))
    assert fold_events(read_events(path)).to_json()["target"]["name"] == r"mi\udcffne"


def test_an_empty_stream_reports_that_nothing_was_judged(tmp_path: Path) -> None:
    stream(tmp_path, [])
    assert write_all(tmp_path).exit == 2
    root = parsed((tmp_path / "junit.xml").read_text("utf-8"))
    assert root.get("errors") == "1"


def test_write_all_makes_every_report_from_the_events(tmp_path: Path) -> None:
    stream(tmp_path, small_run())
    results = write_all(tmp_path)
    assert results.exit == 1
    assert read_results(tmp_path) == json.loads(json.dumps(results.to_json()))
    assert {path.name for path in tmp_path.iterdir()} == {
        "events.jsonl",
        "results.json",
        "junit.xml",
        "ctrf.json",
        "report.html",
        "allure-results",
    }


def test_reporting_twice_gives_the_same_files(tmp_path: Path) -> None:
    stream(tmp_path, small_run())
    write_all(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    write_all(tmp_path)
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}


def test_nothing_of_an_earlier_run_is_left_but_its_walks(tmp_path: Path) -> None:
    write_all(stream(tmp_path, small_run()).parent)
    (tmp_path / "index.html").write_text("of several specs")
    (tmp_path / "walks").mkdir()
    (tmp_path / "walks" / "walk-1.json").write_text("{}")
    forget_all(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["walks"]
    assert (tmp_path / "walks" / "walk-1.json").exists()


def test_results_of_a_killed_run_are_read_from_its_events(tmp_path: Path) -> None:
    stream(tmp_path, small_run()[:4])
    assert read_results(tmp_path)["interrupted"] == "cut off"


def test_a_file_that_is_no_results_document_is_refused(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text("[]", "utf-8")
    with pytest.raises(StreamError, match="not a results document"):
        read_results(tmp_path)


def test_junit_has_one_case_per_row_and_is_as_red_as_the_exit_code() -> None:
    root = parsed(junit.render(fold_events(small_run()).to_json()))
    assert (root.get("tests"), root.get("failures"), root.get("errors"), root.get("skipped")) == ("4", "1", "1", "1")
    cases = {case.get("name", "")[:11].strip(): case for case in root.iter("testcase")}
    failure = cases["AD-RATE-03"].find("failure")
    assert failure is not None
    assert failure.get("type") == "violates"
    assert "expected  429 RATE_LIMITED" in (failure.text or "")
    unseen = cases["AD-CLOCK-01"].find("error")
    assert unseen is not None
    assert unseen.get("message") == "not-observable: blocked by: no [settings] clock_offset; needs clock"
    assert unseen.text == "\nrests on lines 30-31 of the document\n"


def test_junit_survives_hostile_text() -> None:
    text = junit.render(fold_events(hostile_run()).to_json())
    failure = next(parsed(text).iter("failure"))
    assert r"<script>alert(1)</script> \x1b[31mred\x1b[0m ]]> \x00 \ud800" in (failure.text or "")
    assert HOSTILE not in text


@pytest.mark.parametrize(
    ("verdict", "junit_element", "ctrf_status", "allure_status"),
    [
        ("pass", "", "passed", "passed"),
        ("fail", "failure", "failed", "failed"),
        ("fixed", "failure", "failed", "skipped"),
        ("warn", "skipped", "skipped", "skipped"),
        ("known", "skipped", "skipped", "skipped"),
        ("error", "error", "other", "broken"),
        ("inconclusive", "error", "other", "broken"),
        ("not-observable", "error", "other", "skipped"),
        ("not-applicable", "skipped", "skipped", "skipped"),
    ],
)
def test_each_verdict_has_its_word_in_the_other_formats(
    verdict: str, junit_element: str, ctrf_status: str, allure_status: str
) -> None:
    check = finished(RATE, verdict, ("AD-RATE-03", 1), reason="because")
    document = fold_events([started(), plan(row("AD-RATE-03", part(1, [RATE]))), check, ended()]).to_json()
    case = next(parsed(junit.render(document)).iter("testcase"))
    assert [element.tag for element in case] == ([junit_element] if junit_element else [])
    (test,) = ctrf.render(document)["results"]["tests"]
    assert (test["status"], test["rawStatus"]) == (ctrf_status, verdict)
    result = allure_result(document)
    assert result["status"] == allure_status
    assert {"name": "verdict", "value": verdict} in result["labels"]


def test_ctrf_counts_add_up_and_times_are_epoch_milliseconds() -> None:
    report = ctrf.render(fold_events(small_run()).to_json())
    assert (report["reportFormat"], report["specVersion"]) == ("CTRF", "0.0.0")
    summary = report["results"]["summary"]
    statuses = ("passed", "failed", "skipped", "pending", "other")
    assert sum(summary[status] for status in statuses) == summary["tests"] == 4
    assert summary["stop"] - summary["start"] == 7000
    assert report["results"]["environment"]["healthy"] is False
    retried = next(test for test in report["results"]["tests"] if test["name"].startswith("AD-DRAIN-02"))
    assert (retried["retries"], retried["flaky"]) == (1, True)


def allure_result(document: Json, check: str = RATE) -> Json:
    files = allure.render(document)
    results = [json.loads(text) for name, text in files.items() if name.endswith("-result.json")]
    found: Json = next(result for result in results if result["fullName"] == check)
    return found


def test_allure_has_one_test_per_check_with_the_requirement_as_label() -> None:
    document = fold_events(small_run()).to_json()
    result = allure_result(document)
    labels = {(label["name"], label["value"]) for label in result["labels"]}
    assert {
        ("requirement", "AD-RATE-03"),
        ("epic", "admission"),
        ("feature", "AD-RATE"),
        ("story", "The 60 s window truly rolls"),
        ("severity", "critical"),
    } <= labels
    assert result["stop"] - result["start"] == 6100
    assert (result["steps"][0]["name"], result["steps"][0]["status"]) == ("three failures", "passed")
    assert result["steps"][0]["start"] == result["start"]
    transcript = allure.render(document)[result["attachments"][0]["source"]]
    assert "+6.087  → POST /instances/i1/connect  clientBuild=dev-build" in transcript


def test_allure_shows_every_attempt_inside_the_one_test() -> None:
    document = fold_events(small_run()).to_json()
    result = allure_result(document, document["checks"][2]["check"])
    assert result["status"] == "passed"
    assert [step["name"] for step in result["steps"]] == [
        "repeat 1, attempt 1: inconclusive",
        "repeat 1, attempt 2: pass",
    ]


def test_allure_marks_a_check_that_never_ran_as_broken() -> None:
    document = fold_events([started(), plan(row("AD-RATE-03", part(1, [RATE])))]).to_json()
    result = allure_result(document)
    assert (result["status"], result["statusDetails"]["message"]) == ("broken", "inconclusive: run ended before")


def test_allure_drops_the_results_of_an_earlier_run(tmp_path: Path) -> None:
    (tmp_path / "old-result.json").write_text("{}", "utf-8")
    allure.write(fold_events(small_run()).to_json(), tmp_path)
    assert not (tmp_path / "old-result.json").exists()
    assert "profile=control\n" in (tmp_path / "environment.properties").read_text("ascii")


def test_allure_properties_are_ascii_whatever_the_target_is_called(tmp_path: Path) -> None:
    target = TargetFacts("kühl \\ 🦀", "1")
    allure.write(fold_events([started(target=target)]).to_json(), tmp_path)
    text = (tmp_path / "environment.properties").read_text("ascii")
    assert "target=k\\u00fchl \\\\ \\ud83e\\udd80 1\n" in text
