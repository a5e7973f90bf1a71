"""Parts of any number of workers give the same campaign; what is missing is told and never filled in."""

import json
import random

import pytest

from holdfast.load.fold import fold
from holdfast.load.latency import Latencies
from holdfast.load.ledger import Ledger
from tests.load.samples import Recorded, drawn, lines


@pytest.mark.parametrize("workers", [2, 4, 7])
def test_the_same_samples_through_one_and_many_workers_give_the_same_histogram(workers: int) -> None:
    samples = drawn(1000)
    one, many = fold(lines(samples, 1)), fold(lines(samples, workers))
    assert one.latencies("connect") == many.latencies("connect")
    assert one.latencies("connect") == Latencies.of([each.done - each.due for each in samples])
    assert one.outcomes("connect") == many.outcomes("connect")
    assert list(one.history) == list(many.history)
    assert (one.missing(), many.missing()) == ([], [])


def test_the_order_in_which_parts_arrive_changes_nothing() -> None:
    said = list(lines(drawn(300), 4))
    shuffled = [said[0], *random.Random(3).sample(said[1:], len(said) - 1)]
    assert fold(said).latencies("connect") == fold(shuffled).latencies("connect")
    assert fold(shuffled).missing() == []


def test_a_part_that_is_told_twice_counts_once() -> None:
    said = list(lines(drawn(300), 2))
    assert fold([*said, said[1]]).latencies("connect") == fold(said).latencies("connect")


def test_a_worker_that_dies_in_the_middle_is_told() -> None:
    folded = fold(lines(drawn(300), 3, dies=1))
    assert folded.missing() == ["worker w1 went away in the middle; its last requests were not counted"]


def test_a_worker_that_was_never_heard_of_is_told() -> None:
    said = [line for line in lines(drawn(300), 3) if '"w2"' not in line]
    assert fold(said).missing() == ["2 of 3 workers were heard of"]


def test_a_lost_part_is_told() -> None:
    said = list(lines(drawn(300), 1))
    assert fold([said[0], said[1], said[3]]).missing() == [
        "worker w0 went away in the middle; its last requests were not counted"
    ]


def test_a_request_without_an_end_is_told() -> None:
    ledger = Ledger("w0")
    ledger.started(0.0)
    said = [json.dumps({"kind": "start", "at": 1.0, "workers": 1}), json.dumps(ledger.part(last=True))]
    assert fold(said).missing() == ["1 requests were started and never accounted for"]


def test_no_generator_is_told() -> None:
    assert fold([]).missing() == ["the generator never started"]


def test_late_starts_make_the_generator_saturated() -> None:
    samples = [Recorded("connect", each * 0.01, each * 0.01 + 0.2, each * 0.01 + 0.21, "success") for each in range(50)]
    assert fold(lines(samples, 1)).saturated() == ["50 of 50 requests started late, by up to 0.200 s"]
    assert fold(lines(drawn(50), 1)).saturated() == []


def test_seconds_are_told_apart() -> None:
    samples = [*drawn(100), Recorded("connect", 1.5, 1.5, 4.5, "success")]
    folded = fold(lines(samples, 2))
    assert folded.latencies("connect", only=[1]).at(1) == pytest.approx(3.0)
    assert folded.latencies("connect", only=[0]).at(1) < 3.0


def test_a_worker_keeps_nothing_that_it_has_handed_over() -> None:
    ledger = Ledger("w0")
    ledger.sample("connect", 0.0, 0.0, 0.1, "success")
    assert len(ledger.part()["slots"]) == 1
    assert ledger.part()["slots"] == []
