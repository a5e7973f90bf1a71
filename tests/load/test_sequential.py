"""The judge of a percentile: proven after 59 clean trials, honest about every other end."""

import random

import pytest

from holdfast.load.sequential import Proof, chance_of_being_wrong, judge, trials_to_meet, trials_to_miss


def test_59_trials_without_a_miss_prove_p95() -> None:
    assert judge([1.0] * 58, limit=15).proof is Proof.OPEN
    assert judge([1.0] * 58, limit=15).more == 1
    standing = judge([1.0] * 60, limit=15)
    assert (standing.proof, standing.trials) == (Proof.MET, 59)  # it stops where it is proven


def test_a_miss_costs_further_trials_and_the_number_is_told() -> None:
    standing = judge([20.0, *[1.0] * 58], limit=15)
    assert (standing.proof, standing.misses) == (Proof.OPEN, 1)
    assert standing.more == trials_to_meet(1) - 59
    assert "more without a miss would prove it" in standing.describe()
    assert judge([20.0, *[1.0] * (trials_to_meet(1) - 1)], limit=15).proof is Proof.MET


def test_many_misses_prove_the_opposite_soon() -> None:
    standing = judge([20.0] * 59, limit=15)
    assert (standing.proof, standing.trials) == (Proof.MISSED, 2)
    assert "above 15 s" in standing.describe()


def test_one_miss_alone_proves_nothing() -> None:
    assert judge([20.0], limit=15).proof is Proof.OPEN
    assert trials_to_miss(1) == 0


def test_without_a_trial_nothing_is_proven() -> None:
    standing = judge([], limit=15)
    assert (standing.proof, standing.more) == (Proof.OPEN, 59)


def test_the_chance_to_be_wrong_stays_below_five_percent_however_one_stops() -> None:
    assert chance_of_being_wrong() <= 0.05


@pytest.mark.parametrize(("misses", "wrong"), [(0.05, Proof.MET), (0.05, Proof.MISSED)])
def test_a_target_at_the_limit_is_judged_wrongly_in_one_of_twenty_runs_at_most(misses: float, wrong: Proof) -> None:
    draw = random.Random(1)
    found = [judge([draw.random() < misses for _ in range(600)], limit=0.5).proof for _ in range(1000)]
    assert found.count(wrong) <= 1000 * 0.05 + 3 * (1000 * 0.05 * 0.95) ** 0.5


def test_a_good_target_passes_and_a_bad_one_fails() -> None:
    draw = random.Random(2)
    good = [judge([draw.random() < 0.002 for _ in range(600)], limit=0.5).proof for _ in range(200)]
    bad = [judge([draw.random() < 0.3 for _ in range(600)], limit=0.5).proof for _ in range(200)]
    assert good.count(Proof.MET) > 180
    assert bad.count(Proof.MISSED) > 190
