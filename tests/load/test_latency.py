"""Histograms are exact to a thousandth, merge without loss, and know the longest value to the microsecond."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.load.latency import Latencies

DURATIONS = st.lists(st.floats(1e-6, 3000), min_size=1, max_size=200)


@given(DURATIONS)
def test_a_quantile_is_the_sample_of_that_rank_to_a_thousandth(seconds: list[float]) -> None:
    made, ordered = Latencies.of(seconds), sorted(seconds)
    for quantile in (0.5, 0.9, 0.95, 0.99):
        rank = max(int(quantile * len(ordered) + 0.5), 1)
        assert made.at(quantile) == pytest.approx(ordered[rank - 1], rel=0.0011, abs=2e-6)


@given(DURATIONS)
def test_the_longest_is_exact(seconds: list[float]) -> None:
    assert Latencies.of(seconds).at(1) == max(seconds)


@settings(max_examples=20)
@given(DURATIONS, st.integers(1, 5))
def test_parts_merge_to_what_one_place_would_have_recorded(seconds: list[float], workers: int) -> None:
    parts = [Latencies.of(seconds[each::workers]).packed() for each in range(workers)]
    random.Random(1).shuffle(parts)
    merged = Latencies.merged(parts)
    assert merged == Latencies.of(seconds)
    assert merged.summary() == Latencies.of(seconds).summary()


def test_fifteen_seconds_are_told_from_fourteen_and_a_half() -> None:
    """Buckets of a second, as Locust has them there, can't judge a budget of 15 s."""
    assert Latencies.of([14.6] * 100).at(0.95) == pytest.approx(14.6, rel=0.001)
    assert Latencies.of([15.4] * 100).at(0.95) == pytest.approx(15.4, rel=0.001)


def test_what_is_above_a_limit_is_counted() -> None:
    assert Latencies.of([0.5, 1.0, 1.5, 9.0]).above(1.0) == 2


def test_nothing_recorded_has_no_latency() -> None:
    empty = Latencies()
    assert (len(empty), empty.at(0.95), empty.at(1)) == (0, 0.0, 0.0)
    assert Latencies.merged([empty.packed()]) == empty
