"""What XINFO says, in the words of the catalogue."""

import pytest

from holdfast.conformance.coordinator.groups import Group
from holdfast.conformance.coordinator.worker import Published, first_occurrences, numbers


def group(**said: int | str | None) -> Group:
    given = {"pending": 0, "last_delivered": "5-0", "entries_read": 3, "length": 3, "undelivered": 0, **said}
    return Group(queue="q", name="g", **given)  # type: ignore[arg-type]  # a table of several types


def test_a_group_that_has_read_and_acknowledged_all_is_done() -> None:
    assert group().done


@pytest.mark.parametrize("said", [{"pending": 1}, {"entries_read": 2, "undelivered": 1}], ids=["pending", "unread"])
def test_a_group_with_something_left_is_not_done(said: dict[str, int]) -> None:
    assert not group(**said).done


def test_a_group_made_at_the_end_of_its_stream_has_read_nothing() -> None:
    assert not group(entries_read=None).done
    assert not group(entries_read=0).done


def test_a_redis_that_does_not_count_says_what_was_delivered_last() -> None:
    assert group(entries_read=None, counted=False).done
    assert not group(entries_read=None, counted=False, last_delivered="0-0").done


def test_of_an_empty_stream_nothing_is_left() -> None:
    assert group(length=0, entries_read=None, last_delivered="0-0").done


def test_the_last_status_is_the_first_terminal_one() -> None:
    assert Published(["Running", "Completed", "Failed"]).last_status == "Completed"
    assert Published(["Running"]).last_status == "Running"
    assert Published().last_status == ""


def test_numbers_of_logs_are_read_in_their_order() -> None:
    assert numbers(["2", "not ours", "1", "2"]) == [2, 1, 2]
    assert first_occurrences([2, 1, 2]) == [2, 1]
