import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import holdfast.reports
from holdfast.check.evidence import WalkSeen
from holdfast.reports.model import StreamError, fold_events
from holdfast.reports.summary import outcome_line
from holdfast.run.events import CheckWaiting, Event, LeftOut, RunFinished
from holdfast.spec.verdict import Kind, Verdict
from tests.reports.streams import (
    DRAIN,
    EVIDENCE,
    HOSTILE,
    RATE,
    STATE,
    TIMING,
    begun,
    ended,
    finished,
    hostile_run,
    part,
    plan,
    row,
    small_run,
    started,
)

SCHEMA = json.loads((Path(holdfast.reports.__file__).parent / "results.schema.json").read_text("utf-8"))


def folded(*events: Event) -> dict[str, Any]:
    document = fold_events(events).to_json()
    Draft202012Validator(SCHEMA).validate(document)
    return document


def only_row(*events: Event) -> dict[str, Any]:
    (only,) = folded(*events)["requirements"]
    assert isinstance(only, dict)
    return only


def one_check_run(*checks: Event, repeat: int = 1, code: int = 0, **more: Any) -> list[Event]:
    return [started(repeat=repeat), plan(row("AD-RATE-03", part(1, [RATE]), **more)), *checks, ended(code)]


def test_the_schema_is_itself_valid() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert set(SCHEMA["$defs"]["verdict"]["enum"]) == set(Verdict)


@pytest.mark.parametrize("length", range(len(small_run()) + 1))
def test_a_stream_cut_anywhere_still_gives_a_valid_document(length: int) -> None:
    document = folded(*small_run()[:length])
    assert (document["interrupted"] == "cut off") == (length < len(small_run()))


def test_hostile_texts_become_visible_and_valid() -> None:
    document = folded(*hostile_run())
    assert document["requirements"][0]["timings"][0]["margin"] is None
    text = json.dumps(document, ensure_ascii=False)
    text.encode("utf-8")
    assert all(char.isprintable() for char in text)
    assert r"\\x1b[31mred" in text
    assert r"\\ud800" in text
    assert HOSTILE not in text


def test_the_small_run_folds_to_its_four_verdicts() -> None:
    document = folded(*small_run())
    assert {r["id"]: r["verdict"] for r in document["requirements"]} == {
        "AD-RATE-03": "fail",
        "AD-STATE-01": "partial",
        "AD-DRAIN-02": "pass",
        "AD-CLOCK-01": "not-observable",
    }
    summary = document["summary"]
    assert (summary["rows"], summary["fail"], summary["exit"]) == (4, 1, 1)
    assert (summary["check_runs"], summary["checks"]["pass"], summary["inconclusive_after_retry"]) == (4, 2, 0)
    assert document["plan"]["reconciliation"]["agrees"] is True
    assert document["sum_s"] == pytest.approx(18.385)
    assert document["longest_check"]["duration_s"] == 6.1


def test_a_row_out_of_sight_names_its_hook_and_what_stays_unseen() -> None:
    partial = folded(*small_run())["requirements"][1]
    assert partial["reason"] == "part 2 not looked at: needs multi_node"
    assert partial["parts"][1]["hook"] == "a second [[node]]"
    assert partial["parts"][1]["unseen"] == ["Each node keeps its own queue."]


def test_a_finding_carries_the_evidence_of_the_worst_check() -> None:
    failing = folded(*small_run())["requirements"][0]
    assert failing["kind"] == Kind.VIOLATES
    assert failing["finding"]["check"] == RATE
    assert failing["finding"]["seen"] == "200 success"
    assert failing["finding"]["expected"] == EVIDENCE["expected"]
    assert len(failing["finding"]["transcript"]) == 5
    assert failing["finding"]["command"].startswith("holdfast run admission --only AD-RATE-03")


def test_a_planned_check_that_never_came_is_inconclusive() -> None:
    document = folded(started(), plan(row("AD-RATE-03", part(1, [RATE])), row("AD-STATE-01", part(1, [STATE]))))
    assert [r["verdict"] for r in document["requirements"]] == ["inconclusive"] * 2
    assert document["requirements"][0]["reason"] == "run ended before"
    assert document["plan"]["reconciliation"]["missing"] == [RATE, STATE]
    assert document["summary"]["exit"] == 2


def test_a_check_that_was_under_way_says_when_it_had_started() -> None:
    only = only_row(started(), plan(row("AD-RATE-03", part(1, [RATE]))), begun(RATE, at=12.3))
    assert only["reason"] == "run ended before (the check had started at 12.3 s)"


def test_an_attempt_that_was_to_be_tried_again_does_not_decide() -> None:
    document = folded(*one_check_run(finished(RATE, "inconclusive", ("AD-RATE-03", 1), final=False))[:-1])
    assert document["requirements"][0]["verdict"] == "inconclusive"
    assert document["plan"]["reconciliation"]["missing"] == [RATE]
    assert len(document["checks"][0]["attempts"]) == 1


def test_inconclusive_after_the_second_attempt_is_counted() -> None:
    first = finished(RATE, "inconclusive", ("AD-RATE-03", 1), final=False)
    second = finished(RATE, "inconclusive", ("AD-RATE-03", 1), attempt=2)
    summary = folded(*one_check_run(first, second, code=2))["summary"]
    assert (summary["inconclusive_after_retry"], summary["check_runs"], summary["exit"]) == (1, 2, 2)


def test_one_failing_repeat_fails_the_row() -> None:
    runs = [finished(RATE, "fail" if repeat == 2 else "pass", ("AD-RATE-03", 1), repeat=repeat) for repeat in (1, 2, 3)]
    document = folded(*one_check_run(*runs, repeat=3, code=1))
    assert document["requirements"][0]["verdict"] == "fail"
    assert document["requirements"][0]["finding"]["repeat"] == 2
    counts = document["checks"][0]["repeats"]
    assert (counts["pass"], counts["fail"]) == (2, 1)


def test_missing_repeats_are_not_green() -> None:
    only = only_row(*one_check_run(finished(RATE, "pass", ("AD-RATE-03", 1)), repeat=3))
    assert (only["verdict"], only["reason"]) == ("inconclusive", "run ended before (after 1 of 3 repeats)")


@pytest.mark.parametrize(("verdict", "code"), [("known", 0), ("warn", 0), ("error", 2)])
def test_a_check_hands_its_verdict_to_the_row(verdict: str, code: int) -> None:
    known = {"reason": "rewrite pending", "link": "https://example.org/12", "expires": "2027-01-01"}
    check = finished(RATE, verdict, ("AD-RATE-03", 1), reason="because", known=known)
    document = folded(*one_check_run(check, code=code))
    only = document["requirements"][0]
    assert (only["verdict"], only["reason"], only["finding"]["known"]) == (verdict, "because", known)
    assert document["summary"]["exit"] == code
    assert document["plan"]["reconciliation"]["agrees"] is True


def test_a_part_without_a_check_is_an_error() -> None:
    only = only_row(started(), plan(row("AD-RATE-03", part(1, []))), ended(2))
    assert (only["verdict"], only["reason"]) == ("error", "no check for this part")


def test_a_run_without_rows_has_judged_nothing() -> None:
    assert folded(started(), plan(), ended(2))["summary"]["exit"] == 2


def test_parts_outside_the_profile_do_not_count() -> None:
    outside = part(2, ["other"], status="outside-profile")
    rows = [row("AD-RATE-03", part(1, [RATE]), outside), row("AD-OUT-01", part(1, [], status="outside-profile"))]
    document = folded(started(), plan(*rows), finished(RATE, "pass", ("AD-RATE-03", 1)), ended())
    (only,) = document["requirements"]
    assert only["verdict"] == "pass"
    assert [p["part"] for p in only["parts"]] == [1]
    assert document["plan"]["reconciliation"]["agrees"] is True


def test_an_excluded_row_is_not_applicable_and_says_why() -> None:
    excluded = row("AD-RATE-03", part(1, [], status="excluded"), excluded="the target has no limiter")
    only = only_row(started(), plan(excluded), ended())
    assert (only["verdict"], only["reason"]) == ("not-applicable", "the target has no limiter")


def test_a_row_left_out_for_the_budget_is_not_decided() -> None:
    left_out = [LeftOut("AD-RATE-03", "needs 61 s of a budget of 30 s")]
    document = folded(started(), plan(row("AD-RATE-03", part(1, [RATE])), left_out=left_out), ended(2))
    assert document["requirements"][0]["verdict"] == "inconclusive"
    assert document["requirements"][0]["reason"] == "left out: needs 61 s of a budget of 30 s"
    assert document["plan"]["reconciliation"]["missing"] == []


def test_a_check_left_out_for_the_budget_keeps_its_part_from_reading_green() -> None:
    left_out = [LeftOut(STATE, "over the budget of 30 s")]
    announced = plan(row("AD-RATE-03", part(1, [RATE, STATE])), left_out=left_out)
    document = folded(started(), announced, finished(RATE, "pass", ("AD-RATE-03", 1)), ended(2))
    assert document["requirements"][0]["verdict"] == "inconclusive"
    assert document["requirements"][0]["reason"] == "left out: over the budget of 30 s"
    assert document["plan"]["reconciliation"]["agrees"] is True


def test_checks_of_a_mutant_say_nothing_about_the_target() -> None:
    mutant = finished(RATE, "fail", ("AD-RATE-03", 1), variant="AD-RATE-03/1")
    document = folded(*one_check_run(mutant, finished(RATE, "pass", ("AD-RATE-03", 1))))
    assert document["requirements"][0]["verdict"] == "pass"


def test_a_check_may_fail_a_part_that_the_plan_thought_out_of_sight_but_never_pass_it() -> None:
    blind = part(2, [], status="not-observable", reason="needs clock", hook="[settings] clock_offset")
    announced = [started(), plan(row("AD-RATE-03", part(1, [RATE]), blind))]
    places = (("AD-RATE-03", 1), ("AD-RATE-03", 2))
    assert only_row(*announced, finished(RATE, "pass", *places), ended())["verdict"] == "partial"
    assert only_row(*announced, finished(RATE, "fail", *places), ended(1))["verdict"] == "fail"


WALK = "conformance/admission/test_walk.py::test_whatever_users_do"


def with_a_walk(own: str, walk: str, decided: list[str], **more: Any) -> dict[str, Any]:
    """A row with a check of its own and a walk, both finished."""
    place = ("AD-RATE-03", 1)
    both = plan(row("AD-RATE-03", part(1, [RATE, WALK], **more)))
    said = [finished(RATE, own, place), finished(WALK, walk, place, decided=decided, walk=WalkSeen(walks=1))]
    return folded(started(), both, *said, RunFinished(at=7.0, wall_s=7.0))


@pytest.mark.parametrize(
    ("own", "walk", "decided", "verdict", "code"),
    [
        ("pass", "pass", ["AD-RATE-03"], "pass", 0),
        ("pass", "fail", ["AD-RATE-03"], "fail", 1),
        ("pass", "fail", ["AD-OBS-01"], "pass", 0),
        ("pass", "inconclusive", [], "pass", 0),
        ("pass", "not-observable", [], "pass", 0),
        ("pass", "error", [], "pass", 2),
        ("pass", "fail", [], "pass", 1),
        ("not-observable", "pass", ["AD-RATE-03"], "not-observable", 2),
        ("not-applicable", "pass", ["AD-RATE-03"], "not-applicable", 0),
        ("inconclusive", "pass", ["AD-RATE-03"], "inconclusive", 2),
    ],
)
def test_a_walk_can_fail_a_row_that_it_decided_and_never_lifts_one(
    own: str, walk: str, decided: list[str], verdict: str, code: int
) -> None:
    document = with_a_walk(own, walk, decided)
    assert (document["requirements"][0]["verdict"], document["summary"]["exit"]) == (verdict, code)


def test_a_check_that_ended_with_a_finding_about_another_row_leaves_this_one_undecided() -> None:
    claims = (("AD-RATE-03", 1), ("AD-OBS-01", 1))
    rows = plan(row("AD-RATE-03", part(1, [RATE, STATE])))
    said = [finished(RATE, "pass", claims[0]), finished(STATE, "fail", *claims, decided=["AD-OBS-01"], reason="two")]
    document = folded(started(), rows, *said, RunFinished(at=7.0, wall_s=7.0))
    [seen] = document["requirements"]
    assert seen["verdict"] == "inconclusive"
    assert seen["reason"] == "its check ended with a finding about AD-OBS-01: two"


def test_a_walk_that_no_row_shows_is_told_in_the_outcome() -> None:
    assert outcome_line(with_a_walk("pass", "error", [])) == "a check of walks ended as error"


def test_walks_alone_are_undecided_where_one_of_them_could_not_judge() -> None:
    other = f"{WALK}_and_crash"
    rows = plan(row("AD-RATE-03", part(1, [WALK, other])))
    said = [
        finished(WALK, "pass", ("AD-RATE-03", 1), decided=["AD-RATE-03"]),
        finished(other, "inconclusive", ("AD-RATE-03", 1), decided=[]),
    ]
    document = folded(started(purpose="walks"), rows, *said, RunFinished(at=7.0, wall_s=7.0))
    assert document["summary"]["exit"] == 2


def test_a_check_outside_the_plan_counts_for_its_row_and_is_named() -> None:
    surprise = finished(STATE, "fail", ("AD-RATE-03", 1))
    document = folded(*one_check_run(finished(RATE, "pass", ("AD-RATE-03", 1)), surprise, code=1))
    assert document["requirements"][0]["verdict"] == "fail"
    assert document["requirements"][0]["checks"] == [RATE, STATE]
    assert document["plan"]["reconciliation"]["unexpected"] == [STATE]
    assert document["plan"]["reconciliation"]["agrees"] is False


def test_an_exit_code_that_the_rows_contradict_is_named() -> None:
    document = folded(*one_check_run(finished(RATE, "fail", ("AD-RATE-03", 1)), code=0))
    assert document["plan"]["reconciliation"]["notes"] == ["The run ended with exit 0, but its rows call for 1."]


def test_violates_is_the_stronger_kind() -> None:
    absent = finished(DRAIN, "fail", ("AD-RATE-03", 1), kind="absent")
    violates = finished(RATE, "fail", ("AD-RATE-03", 1), kind="violates")
    rows = plan(row("AD-RATE-03", part(1, [DRAIN, RATE])))
    assert only_row(started(), rows, absent, violates, ended(1))["kind"] == "violates"
    assert only_row(started(), rows, absent, ended(1))["kind"] == "absent"


def test_timings_of_every_repeat_stay() -> None:
    runs = [finished(RATE, "pass", ("AD-RATE-03", 1), repeat=repeat, timings=[TIMING]) for repeat in (1, 2)]
    only = only_row(*one_check_run(*runs, repeat=2))
    assert [(timing["repeat"], timing["check"]) for timing in only["timings"]] == [(1, RATE), (2, RATE)]


def test_what_a_check_waits_for_changes_no_result() -> None:
    assert folded(CheckWaiting(check=RATE), *small_run()) == folded(*small_run())


def test_another_schema_is_refused_with_a_remedy() -> None:
    with pytest.raises(StreamError, match=r"schema 2, but this Holdfast reads schema 1\. Use Holdfast 0\.1\.0"):
        fold_events([started(schema=2)])


def test_an_unknown_verdict_is_refused() -> None:
    with pytest.raises(StreamError, match="has the verdict 'green'"):
        fold_events([finished(RATE, "green")])
