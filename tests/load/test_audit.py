"""An audit of an event log: what ended never, twice, or without a beginning is found."""

import pytest

from holdfast.load.audit import audited
from holdfast.load.campaign import Audit
from holdfast.spec.verdict import Verdict

AUDIT = Audit("began", ("good", "bad"), "id", "X-1")


def judged(*events: tuple[str, str]) -> tuple[Verdict, str]:
    found = audited(AUDIT, lambda name: [{"id": of} for event, of in events if event == name])
    return found.verdict, found.seen


def test_one_end_for_each_beginning_passes() -> None:
    verdict, seen = judged(("began", "a"), ("began", "b"), ("bad", "b"), ("good", "a"))
    assert (verdict, seen) == (Verdict.PASS, "2 began, 2 ends; 0 wrong")


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ((("began", "a"),), "a ended 0 times"),
        ((("began", "a"), ("good", "a"), ("bad", "a")), "a ended 2 times"),
        ((("began", "a"), ("good", "a"), ("good", "b")), "b ended and never began"),
    ],
)
def test_every_other_number_of_ends_fails(events: tuple[tuple[str, str], ...], said: str) -> None:
    verdict, seen = judged(*events)
    assert verdict is Verdict.FAIL
    assert said in seen


def test_nothing_in_the_log_is_no_pass_and_no_log_names_the_hook() -> None:
    assert judged()[0] is Verdict.INCONCLUSIVE
    found = audited(AUDIT, lambda _name: [], missing="[observe] events")
    assert (found.verdict, found.reason) == (Verdict.NOT_OBSERVABLE, "[observe] events is not there")


def test_only_records_like_the_patterns_count_and_a_field_that_is_not_there_excludes_nothing() -> None:
    audit = Audit("began", ("good",), "id", where={"key": "tuner:*"})
    events = {
        "began": [{"id": "a"}],
        "good": [{"id": "a", "key": "tuner:1"}, {"id": "a", "key": "service:x"}],
    }
    assert audited(audit, lambda name: events[name]).verdict is Verdict.PASS
    events["good"].append({"id": "a", "key": "tuner:2"})
    assert audited(audit, lambda name: events[name]).verdict is Verdict.FAIL


def test_ends_are_looked_for_in_the_stream_where_one_is_named() -> None:
    audit = Audit("began", ("good",), "id", stream="bus")
    logged = {"began": [{"id": "a"}], "good": [{"id": "a"}, {"id": "a"}]}
    found = audited(audit, lambda name: logged[name], lambda _name: [{"id": "a"}])
    assert (found.verdict, found.expected) == (Verdict.PASS, "exactly one of good in bus for each")
