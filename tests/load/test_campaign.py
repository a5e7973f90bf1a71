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


def arrivals(table: str, scale: float = 0.2, more: str = "") -> tuple[float, int]:
    made = numbers(scale, TEXT.replace('{ shape = "burst", count = 1500, seconds = 5 }', table + more))
    return made.arrivals.seconds, len(made.due)


def test_the_time_scale_shortens_the_campaign_and_keeps_the_rate() -> None:
    assert arrivals("{ rate = 50, seconds = 60 }") == (12.0, 600)
    assert arrivals("{ rate = 50, seconds = 60 }", 1) == (60.0, 3000)


def test_a_burst_keeps_its_number_and_its_seconds() -> None:
    assert arrivals('{ shape = "burst", count = 1500, seconds = 5 }') == (5.0, 1500)


def test_a_long_campaign_may_have_a_short_form() -> None:
    assert arrivals("{ rate = 50, seconds = 600 }", more="\nshort = 20") == (20.0, 1000)
    assert arrivals("{ rate = 50, seconds = 600 }", 1, "\nshort = 20") == (600.0, 30000)


def test_rate_and_length_may_be_formulas_of_times_that_are_scaled_already() -> None:
    formulas = '{ rate = "capacity / grace", seconds = "2 * grace" }'
    assert (arrivals(formulas), arrivals(formulas, 1)) == ((24.0, 20), (120.0, 20))


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
