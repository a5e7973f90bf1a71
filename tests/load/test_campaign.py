"""Campaigns as data: what can be read, and what is told about what can't."""

import pytest

from holdfast.load.campaign import Campaign, CampaignError, Numbers, parse
from holdfast.spec.catalogue import builtin
from holdfast.spec.timings import Timings

TEXT = """
[campaign.X1]
title = "One"
story = "Two."
user = "direct"
arrivals = { shape = "burst", count = 1500, seconds = 5 }
parameters = { capacity = 10, stay = "5s" }
rules = ["capacity"]
budgets = [{ of = "connect", quantile = 1, within = "attempt_deadline + deadline_slack", document = true }]
counts = [{ of = "connect", outcome = "QUEUE_FULL", exactly = "arrivals - capacity - queue_cap" }]
"""


def numbers(scale: float, text: str = TEXT) -> Numbers:
    return Numbers(parse(text)["X1"], Timings(builtin("admission"), scale))


def test_a_campaign_is_read() -> None:
    made = parse(TEXT)["X1"]
    assert isinstance(made, Campaign)
    assert (made.user, made.rules, made.budgets[0].document, made.judges) == ("direct", ("capacity",), True, 3)


def test_durations_scale_and_counts_do_not() -> None:
    assert numbers(0.2).parameters() == {"capacity": 10.0, "stay": 1.0}
    assert numbers(1).parameters() == {"capacity": 10.0, "stay": 5.0}


def test_formulas_know_timings_limits_parameters_and_arrivals() -> None:
    made = numbers(1)
    assert made.of("arrivals - capacity - queue_cap") == 490
    assert made.latency("attempt_deadline") == 10
    assert numbers(0.2).latency("attempt_deadline") == 2


def test_a_latency_that_is_written_out_is_never_scaled() -> None:
    assert numbers(0.2).latency("50ms") == 0.05


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("title =", "titel =", "campaign X1: titel is no key"),
        ('user = "direct"', "", "missing 1 required positional argument: 'user'"),
        ('shape = "burst"', 'shape = "wave"', "no shape 'wave'"),
        ("quantile = 1", "quantil = 1", "budgets: quantil is no key"),
        ("[campaign.X1]", "[campaign.X1", "campaigns: "),
    ],
)
def test_mistakes_are_told_with_their_place(old: str, new: str, said: str) -> None:
    with pytest.raises(CampaignError, match=said):
        parse(TEXT.replace(old, new))


def test_a_campaign_that_judges_nothing_is_refused() -> None:
    text = "\n".join(line for line in TEXT.splitlines() if line.split(" ")[0] not in ("rules", "budgets", "counts"))
    with pytest.raises(CampaignError, match="it judges nothing"):
        parse(text)


def test_an_unknown_name_in_a_formula_is_told() -> None:
    with pytest.raises(CampaignError, match="X1: 'colour' is not"):
        numbers(1).of("colour * 2")
