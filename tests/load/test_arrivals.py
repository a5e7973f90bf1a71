"""When requests are due: exactly for even arrivals, on average for random ones, the same for all numbers of workers."""

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.load.arrivals import Arrivals, ArrivalsError, share


def test_a_constant_rate_is_evenly_spaced() -> None:
    due = Arrivals.of({"shape": "constant", "rate": 50, "seconds": 60}).due(1)
    assert len(due) == 3000
    assert max(b - a for a, b in itertools.pairwise(due)) == pytest.approx(0.02)


def test_a_burst_has_its_number_in_its_seconds() -> None:
    due = Arrivals.of({"shape": "burst", "count": 1500, "seconds": 5}).due(1)
    assert len(due) == 1500
    assert 4.9 < due[-1] < 5.0


def test_a_ramp_follows_its_line() -> None:
    due = Arrivals.of({"shape": "ramp", "from": 0, "to": 100, "seconds": 10}).due(1)
    assert len(due) == 500
    assert sum(each < 5 for each in due) == pytest.approx(125, abs=1)  # half the time, a quarter of the area


def test_steps_and_a_spike_have_their_rates() -> None:
    steps = Arrivals.of({"shape": "steps", "rates": [10, 100], "seconds": 10}).due(1)
    assert [sum(each < 5 for each in steps), len(steps)] == pytest.approx([50, 550], abs=1)
    spike = Arrivals.of({"shape": "spike", "rate": 10, "peak": 500, "at": 0.5, "for": 0.1, "seconds": 10}).due(1)
    assert sum(5 <= each < 6 for each in spike) == pytest.approx(500, abs=1)
    assert Arrivals.of({"shape": "spike", "rate": 10, "peak": 500, "at": 0.5, "for": 0.1, "seconds": 10}).rate_at(
        5.5
    ) == pytest.approx(500)


def test_a_poisson_process_has_the_rate_and_the_spread_of_one() -> None:
    due = Arrivals.of({"rate": 200, "seconds": 100, "poisson": True}).due(7)
    gaps = [b - a for a, b in itertools.pairwise(due)]
    mean = sum(gaps) / len(gaps)
    spread = (sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) ** 0.5
    assert len(due) == pytest.approx(20_000, rel=0.03)
    assert spread / mean == pytest.approx(1.0, abs=0.05)  # evenly spaced ones would have 0


def test_one_seed_gives_one_list() -> None:
    arrivals = Arrivals.of({"rate": 100, "seconds": 5, "poisson": True})
    assert list(arrivals.due(3)) == list(arrivals.due(3))
    assert list(arrivals.due(3)) != list(arrivals.due(4))


def test_recorded_arrivals_are_played_again() -> None:
    assert list(Arrivals.of({"shape": "replayed", "at": [3, 0.5, 1]}).due(1)) == [0.5, 1.0, 3.0]


@given(st.integers(1, 9), st.lists(st.floats(0, 100), max_size=50))
def test_workers_share_the_list_without_a_gap_or_a_double(workers: int, due: list[float]) -> None:
    parts = [entry for worker in range(workers) for entry in share(due, worker, workers)]
    assert sorted(parts) == list(enumerate(due))


@given(st.lists(st.tuples(st.floats(0.1, 5), st.floats(0, 200)), min_size=2, max_size=6))
def test_due_times_never_fall_and_stay_inside(pieces: list[tuple[float, float]]) -> None:
    rates = [rate for _, rate in pieces]
    arrivals = Arrivals.of({"shape": "steps", "rates": rates, "seconds": 5, "poisson": random.Random(1).random() < 0.5})
    due = list(arrivals.due(1))
    assert due == sorted(due)
    assert all(0 <= each <= 5.001 for each in due)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"shape": "wave", "rate": 1, "seconds": 1}, "no shape 'wave'"),
        ({"rate": 1}, "seconds missing or unknown"),
        ({"rate": 1, "seconds": 1, "to": 5}, "to missing or unknown"),
        ({"rate": -1, "seconds": 1}, "none below 0"),
        ({"rate": 1, "seconds": 0}, "seconds above it"),
    ],
)
def test_arrivals_that_make_no_sense_are_told(table: dict[str, object], said: str) -> None:
    with pytest.raises(ArrivalsError, match=said):
        Arrivals.of(table)
