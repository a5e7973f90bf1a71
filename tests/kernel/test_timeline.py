import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.check.timeline import (
    Elapsed,
    Judgement,
    Moment,
    judge_at_least,
    judge_at_most,
    samples_needed,
    upper_bound,
)


@pytest.mark.parametrize(
    ("lo", "hi", "explained", "judgement"),
    [
        (1.0, 1.9, 0.0, Judgement.HOLDS),
        (1.0, 2.0, 0.0, Judgement.HOLDS),
        (1.9, 2.1, 0.0, Judgement.STRADDLES),
        (2.1, 2.2, 0.0, Judgement.MISSED),
        (2.1, 2.2, 0.2, Judgement.MACHINE),
        (2.5, 2.6, 0.2, Judgement.MISSED),
    ],
)
def test_an_upper_limit_judges_the_whole_interval(lo: float, hi: float, explained: float, judgement: Judgement) -> None:
    assert judge_at_most(Elapsed(lo, hi), 2.0, explained) is judgement


@pytest.mark.parametrize(
    ("lo", "hi", "judgement"),
    [(2.0, 2.5, Judgement.HOLDS), (1.9, 2.1, Judgement.STRADDLES), (1.0, 1.9, Judgement.MISSED)],
)
def test_a_lower_limit_is_never_excused(lo: float, hi: float, judgement: Judgement) -> None:
    assert judge_at_least(Elapsed(lo, hi), 2.0) is judgement


def test_the_time_between_two_moments_keeps_both_doubts() -> None:
    assert Moment(5.0, 5.5).since(Moment(1.0, 1.2)) == Elapsed(3.8, 4.5)


def test_the_known_sample_sizes() -> None:
    assert [samples_needed(0.95), samples_needed(0.99), samples_needed(0.98)] == [59, 299, 149]
    assert [samples_needed(0.98, misses=1), samples_needed(0.98, misses=2)] == [236, 313]


def test_too_few_samples_bound_nothing() -> None:
    bound = upper_bound([0.1] * 58, 0.95)
    assert (bound.value, bound.needed) == (None, 59)


def test_at_the_least_size_the_worst_sample_is_the_bound() -> None:
    assert upper_bound([*[0.1] * 58, 9.0], 0.95).value == 9.0
    assert upper_bound([*[0.1] * 92, 9.0], 0.95).value == 0.1


@given(st.lists(st.floats(0, 10), min_size=59, max_size=300))
def test_the_bound_is_one_of_the_samples_and_above_the_quantile_of_them(samples: list[float]) -> None:
    bound = upper_bound(samples, 0.95)
    assert bound.value in samples
    assert sum(sample > bound.value for sample in samples) <= 0.05 * len(samples)
