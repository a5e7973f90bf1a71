"""Verdicts of a campaign: what passes, what fails, and what must stay undecided; and the documents made of them."""

import json
import math
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.check.history import History, Operation, Outcome
from holdfast.load.campaign import Campaign, Numbers, Recovery, campaigns, parse
from holdfast.load.document import Told, document
from holdfast.load.fold import Folded, fold
from holdfast.load.judge import FaultWindow, Judgement, decide, phases, proven, recovered, trials
from holdfast.load.rules import RULES
from holdfast.reports import load as reports
from holdfast.spec.catalogue import builtin
from holdfast.spec.timings import Timings
from holdfast.spec.verdict import Verdict
from tests.load.samples import Recorded, drawn, lines

TEXT = """
[campaign.X1]
title = "One"
story = "Two."
user = "direct"
arrivals = { rate = 100, seconds = 3 }
parameters = { capacity = 1000 }
budgets = [{ of = "connect", quantile = 1, within = "attempt_deadline", document = true, rests_on = "AD-TIME-01" }]
counts = [{ of = "connect", outcome = "lost", exactly = 0 }]
rules = ["capacity"]
"""


def numbers(text: str = TEXT) -> Numbers:
    return Numbers(parse(text)["X1"], Timings(builtin("admission")))


def judged(folded: Folded, *windows: FaultWindow, text: str = TEXT) -> Judgement:
    made = numbers(text)
    return decide(made.campaign, made, folded, windows)


def with_a_slow_one(seconds: float, *, left_late: bool = False) -> list[Recorded]:
    sent = 1.0 + (seconds if left_late else 0.0)
    return [*drawn(300), Recorded("connect", 1.0, sent, 1.0 + seconds + 0.01, "success")]


def test_a_good_campaign_passes() -> None:
    assert judged(fold(lines(drawn(300), 2))).verdict is Verdict.PASS


def test_one_attempt_past_the_deadline_of_the_document_fails() -> None:
    found = judged(fold(lines(with_a_slow_one(10.2), 1)))
    assert found.verdict is Verdict.FAIL
    assert "the longest connect: expected at most 10 s, seen 10.210 s" in found.reason


def test_a_number_of_ours_only_warns() -> None:
    text = TEXT.replace("document = true, ", "")
    assert judged(fold(lines(with_a_slow_one(10.2), 1)), text=text).verdict is Verdict.WARN


def test_a_delay_of_the_generator_alone_is_not_the_targets() -> None:
    found = judged(fold(lines(with_a_slow_one(10.2, left_late=True), 1)))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "only the generator's own delay" in found.reason


def test_a_saturated_generator_judges_no_latency() -> None:
    late = [Recorded("connect", n * 0.01, n * 0.01 + 0.2, n * 0.01 + 0.3, "success") for n in range(300)]
    found = judged(fold(lines(late, 1)))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "generator saturated: 300 of 300" in found.reason


def test_one_hiccup_of_the_generator_is_no_saturation_and_a_long_one_is() -> None:
    def hiccup(seconds: float) -> Folded:
        late = [
            Recorded("connect", each, each + seconds, each + seconds + 0.1, "success") for each in (1.0, 1.01, 1.02)
        ]
        return fold(lines([*drawn(300), *late], 1))

    assert judged(hiccup(0.2)).verdict is Verdict.PASS
    assert judged(hiccup(0.6)).verdict is Verdict.INCONCLUSIVE


def test_a_machine_that_is_too_slow_accuses_nobody() -> None:
    late = [Recorded("connect", n * 0.01, n * 0.01 + 0.2, n * 0.01 + 0.3, "success") for n in range(300)]
    slow = Recorded("connect", 1.0, 1.1, 15.0, "success")
    assert judged(fold(lines([*late, slow], 1))).verdict is Verdict.INCONCLUSIVE


def test_the_longest_of_all_is_too_long_whatever_is_missing() -> None:
    assert judged(fold(lines(with_a_slow_one(10.2), 4, dies=2))).verdict is Verdict.FAIL


def test_a_worker_that_dies_makes_the_campaign_inconclusive() -> None:
    found = judged(fold(lines(drawn(300), 4, dies=2)))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "worker w2 went away" in found.reason


def test_a_broken_rule_fails_whatever_else_is_in_doubt() -> None:
    found = judged(fold(lines(drawn(300), 4, dies=2)), text=TEXT.replace("capacity = 1000", "capacity = 5"))
    assert found.verdict is Verdict.FAIL


def test_a_count_that_is_too_great_fails_even_if_workers_are_missing() -> None:
    text = TEXT.replace('outcome = "lost"', 'outcome = "success"')
    assert judged(fold(lines(drawn(300), 4, dies=2)), text=text).verdict is Verdict.FAIL


def test_a_fault_without_its_receipt_decides_nothing() -> None:
    unproven = FaultWindow("stop redis", 1.0, 1.1, 2.0, 2.1, proven=False, receipts=("it answered",))
    found = judged(fold(lines(drawn(300), 1)), unproven)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "fault not applied: stop redis: it answered" in found.reason


def test_nothing_started_is_inconclusive_in_one_finding() -> None:
    found = judged(fold([json.dumps({"kind": "refused", "why": "could not arrange it"})]))
    assert (found.verdict, found.reason) == (Verdict.INCONCLUSIVE, "could not arrange it")


def test_seconds_lie_before_during_or_after_a_fault() -> None:
    window = FaultWindow("stop redis", 2.5, 2.6, 3.4, 3.5, proven=True)
    assert phases([window], 5) == {"all": [0, 1, 2, 3, 4, 5], "before": [0, 1], "during": [2, 3], "after": [4, 5]}


WINDOW = FaultWindow("kill a", 1.0, 1.1, 2.0, 2.1, proven=True)
KILLS = [FaultWindow("kill a", each, each, each + 1.0, each + 1.0, proven=True) for each in range(0, 1000, 10)]


def back(client: str, lost: float, at: float) -> Operation:
    ended = Outcome.UNKNOWN if math.isinf(at) else Outcome.OK
    return Operation(client, "return", "i", None, ended, None, lost, at)


def test_where_everyone_counts_a_fault_is_over_with_the_last_of_those_who_felt_it() -> None:
    recovery = Recovery("return", "back", 5.0, everyone=True)
    told = [back("x", 1.2, math.inf), back("x", 1.2, 3.0), back("y", 1.5, math.inf), back("late", 8.0, 9.0)]
    away = History.of(told)
    assert trials(recovery, away, [WINDOW]) == [math.inf]
    assert not recovered(recovery, away, WINDOW)
    home = History.of([*told, back("y", 1.5, 4.5)])
    assert trials(recovery, home, [WINDOW]) == [3.5]
    assert recovered(recovery, home, WINDOW)


def test_a_fault_that_nobody_felt_or_that_was_not_proven_is_no_trial() -> None:
    recovery = Recovery("return", "back", 5.0, everyone=True)
    unproven = replace(WINDOW, proven=False)
    assert trials(recovery, History.of([back("x", 0.5, 0.7)]), [WINDOW]) == []
    assert trials(recovery, History.of([back("x", 1.5, 1.7)]), [unproven]) == []


def recovering(seconds: Iterable[float]) -> Folded:
    """Returns a campaign in which each kill was felt by one client, for so long."""
    folded = fold(lines(drawn(300), 1))
    folded.operations += [back("x", kill.asked, kill.asked + took) for kill, took in zip(KILLS, seconds, strict=False)]
    return folded


def test_a_recovery_is_proven_after_59_kills_without_a_miss_and_open_before() -> None:
    text = TEXT + 'recoveries = [{ of = "return", outcome = "back", within = "5s", everyone = true }]\n'
    made = numbers(text)
    for kills, verdict in ((58, Verdict.INCONCLUSIVE), (59, Verdict.PASS)):
        folded = recovering([1.0] * kills)
        found = judged(folded, *KILLS[:kills], text=text)
        assert found.verdict is verdict
        assert proven(made.campaign, made, folded, KILLS[:kills]) == (verdict is Verdict.PASS)
    assert (
        "58 independent trials took longer than 5 s; 1 more"
        in judged(recovering([1.0] * 58), *KILLS[:58], text=text).reason
    )


def test_two_misses_at_once_prove_that_it_is_missed_and_a_number_of_ours_warns() -> None:
    text = TEXT + 'recoveries = [{ of = "return", outcome = "back", within = "5s", everyone = true }]\n'
    found = judged(recovering([5.1, 5.1]), *KILLS[:2], text=text)
    assert found.verdict is Verdict.WARN
    assert "2 of 2 independent trials took longer than 5 s" in found.reason


def test_a_single_recovery_is_judged_by_itself_where_no_percentile_is_asked_for() -> None:
    text = TEXT + 'recoveries = [{ of = "return", outcome = "back", within = "5s", quantile = 1, everyone = true }]\n'
    assert judged(recovering([4.9]), KILLS[0], text=text).verdict is Verdict.PASS
    assert judged(recovering([5.1]), KILLS[0], text=text).verdict is Verdict.WARN
    assert judged(recovering([]), text=text).verdict is Verdict.INCONCLUSIVE


def test_outcomes_that_begin_alike_are_counted_together() -> None:
    text = TEXT.replace('outcome = "lost"', 'outcome = "suc*"')
    assert judged(fold(lines(drawn(300), 1)), text=text).verdict is Verdict.FAIL


def test_a_count_that_a_slow_machine_may_explain_is_not_judged_on_one() -> None:
    late = [Recorded("connect", n * 0.01, n * 0.01 + 0.2, n * 0.01 + 0.3, "success") for n in range(300)]
    text = TEXT.replace('outcome = "lost", exactly = 0', 'outcome = "success", exactly = 0, timely = true')
    assert judged(fold(lines(late, 1)), text=text).verdict is Verdict.INCONCLUSIVE
    assert judged(fold(lines(drawn(300), 1)), text=text).verdict is Verdict.FAIL


@pytest.mark.parametrize("samples", [300, 0])
def test_every_report_is_written_and_the_document_keeps_to_its_schema(samples: int, tmp_path: Path) -> None:
    made, folded = numbers(), fold(lines(drawn(samples), 2))
    window = FaultWindow("stop redis", 1.0, 1.1, 2.0, 2.1, proven=True, receipts=("stopped",))
    told = Told(made.campaign, made, folded, [window], decide(made.campaign, made, folded, [window]), 3.0)
    identity = {
        "holdfast": "1",
        "spec": "admission",
        "target": {"name": "<b>&", "version": ""},
        "time_scale": 1.0,
        "seed": 1,
        "command": "holdfast load admission",
        "started": "2026-01-01T00:00:00+00:00",
    }
    whole = document([told], identity)
    assert reports.problems(whole) == []
    reports.write(whole, tmp_path)
    page = (tmp_path / "load.html").read_text("utf-8")
    assert "<b>&" not in page
    assert ("Latency over time" in page) == bool(samples)
    assert 'tests="3"' in (tmp_path / "junit.xml").read_text("utf-8")
    assert len(list((tmp_path / "allure-results").glob("*-result.json"))) == 1


@pytest.mark.parametrize("key", ["admission", "lockd"])
def test_the_campaigns_rest_on_rows_that_exist_and_their_formulas_have_values(key: str) -> None:
    catalogue = builtin(key)
    rows = {row.id for row in catalogue}
    for each in campaigns(key).values():
        cited = {found.rests_on for found in each.budgets} | {found.rests_on for found in each.counts}
        cited |= {found.rests_on for found in each.recoveries} | {found.rests_on for found in each.audits}
        assert cited <= rows, each.id
        assert set(each.rules) <= RULES.keys(), each.id
        for scale in (0.2, 1.0):
            assert_numbers(each, Timings(catalogue, scale))


def assert_numbers(each: Campaign, timings: Timings) -> None:
    made = Numbers(each, timings)
    values = [*made.parameters().values(), *(made.latency(budget.within) for budget in each.budgets)]
    values += [made.latency(recovery.within) for recovery in each.recoveries]
    values += [made.of(time) for fault in each.faults for time in (fault.at, fault.lasts, fault.every, fault.spread)]
    values += [made.of(count.exactly) for count in each.counts if count.exactly is not None]
    assert all(math.isfinite(value) for value in values)
    assert len(made.due)
