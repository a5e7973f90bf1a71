"""What became of many attempts at once: what ended as timeout explains too few of an outcome, and never too many."""

import pytest

from holdfast.check.finding import Finding, Inconclusive, Unsafe
from holdfast.conformance.admission.crowds import exactly, one_success, settled
from holdfast.conformance.admission.wire import Answer

SILENT = Answer(0, {}, None, "after 5.0 s")


def _answer(outcome: str, reason: str = "", status: int = 200) -> Answer:
    return Answer(status, {}, {"outcome": outcome, "reason": reason or None, "sessionId": "s"})


IN, WAITS, LATE = _answer("success"), _answer("queued"), _answer("timeout", "TIMEOUT")
OUT, BUSY = _answer("failed", "ALREADY_IN_SESSION"), _answer("failed", "INTERNAL_ERROR", 503)
BROKEN = _answer("failed", "INTERNAL_ERROR", 500)


def test_the_right_numbers_hold() -> None:
    exactly([IN, WAITS, WAITS], {"success": 1, "queued": 2, "QUEUE_FULL": 0})
    assert one_success([OUT, IN, OUT], "a race") is IN
    assert one_success([OUT, IN, LATE, SILENT, BUSY], "a race") is IN


@pytest.mark.parametrize("late", [LATE, SILENT, BUSY], ids=["timeout", "no answer", "503"])
def test_what_ended_as_timeout_may_explain_too_few(late: Answer) -> None:
    with pytest.raises(Inconclusive, match="1 of 3 attempts"):
        exactly([IN, WAITS, late], {"success": 1, "queued": 2})
    with pytest.raises(Inconclusive, match="1 of 2 attempts"):
        one_success([OUT, late], "a race")


def test_nothing_explains_too_many() -> None:
    with pytest.raises(Unsafe):
        exactly([IN, IN, LATE], {"success": 1, "queued": 2})
    with pytest.raises(Unsafe):
        one_success([IN, IN, LATE], "a race")


def test_too_few_without_a_reason_and_other_answers_are_findings() -> None:
    with pytest.raises(Finding, match="one success"):
        one_success([OUT, OUT], "a race")
    for odd in (BROKEN, WAITS, _answer("failed", "MAINTENANCE")):
        with pytest.raises(Finding, match="other answer"):
            one_success([IN, odd], "a race")
    assert one_success([IN, _answer("failed", "MAINTENANCE")], "a race", refusals=None) is IN
    with pytest.raises(Finding):
        exactly([IN, WAITS, BROKEN], {"success": 1, "queued": 2})


def test_some_may_run_out_of_time_and_not_most() -> None:
    assert settled([IN, WAITS, LATE]) == [IN, WAITS]
    with pytest.raises(Inconclusive, match="2 of 3"):
        settled([IN, LATE, SILENT])
