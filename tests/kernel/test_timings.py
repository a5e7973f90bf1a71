from pathlib import Path

import pytest

from holdfast.spec.catalogue import Catalogue, builtin, load
from holdfast.spec.timings import Timings, UnknownTimingError

ADMISSION = builtin("admission")
MIXED = """
[spec]
key = "x"
title = "t"
source = "s"
version = "1"
[timings.seed]
lease = "30s"
[timings.fixed]
skew = "5s"
[timings.ours.tolerance]
slack = "1s"
[timings.ours.latency]
hop = "2s"
[timings.ours.bound]
taken_over = "38s"
skewed = "15s"
[timings.ours.give_up]
gone = "60s"
[limits.seed]
retries = 3
publications = 4
[formulas]
taken_over = "lease + skew + slack + hop"
skewed = "retries*skew"
gone = "2*lease"
publications = "1 + retries"
[[requirement]]
id = "XX-A-01"
section = "1"
lines = "1"
level = "MUST"
origin = "seed"
title = "t"
text = "t"
needs = ["wire"]
observe = "o"
violations = ["v"]
"""


@pytest.fixture
def mixed(tmp_path: Path) -> Catalogue:
    (tmp_path / "x.toml").write_text(MIXED)
    return load(tmp_path / "x.toml")


def test_the_scale_multiplies_the_specs_time_but_no_latency() -> None:
    timings = Timings(ADMISSION, 0.2)
    assert timings.grace == pytest.approx(12)
    assert timings.rate_lock == pytest.approx(12)
    assert timings.prompt == 1
    assert timings.redis_hop == 0.005


def test_tolerances_keep_their_floor() -> None:
    timings = Timings(ADMISSION, 0.01)
    assert timings.slack == 0.25
    assert timings.of("slack").floor == 0.25
    assert Timings(ADMISSION, 1).slack == 2


def test_an_overridden_term_carries_through_the_sums() -> None:
    timings = Timings(ADMISSION, 0.5, {"grace": 30, "heartbeat_interval": 10}, {"missed_heartbeats": 3})
    assert timings.grace_reclaim == pytest.approx((30 + 30) * 0.5)
    assert timings.stale_limit == pytest.approx(15)
    assert timings.of("grace").source == "target"
    assert timings.of("janitor_interval").source == "catalogue"


def test_planned_waiting_is_a_formula_of_timings_and_limits() -> None:
    assert Timings(ADMISSION, 1).evaluate("grace + 2*slack + max(1, rate_failures)") == pytest.approx(69)


def test_an_unknown_name_says_which_there_are() -> None:
    with pytest.raises(UnknownTimingError, match="grace_reclaim"):
        Timings(ADMISSION).of("graze")
    with pytest.raises(UnknownTimingError, match="queue_cap"):
        Timings(ADMISSION).count("queue_cup")


def test_a_sum_scales_term_by_term_each_by_its_own_kind(mixed: Catalogue) -> None:
    timings = Timings(mixed, 0.2)
    assert timings.taken_over == pytest.approx(30 * 0.2 + 5 + 0.25 + 2)
    assert timings.of("taken_over").spec_seconds == 38
    assert Timings(mixed, 0.2, {"hop": 4}).taken_over == pytest.approx(30 * 0.2 + 5 + 0.25 + 4)


def test_what_the_spec_fixes_never_scales(mixed: Catalogue) -> None:
    timings = Timings(mixed, 0.2)
    assert (timings.skew, timings.skewed) == (5, 15)
    assert Timings(mixed, 0.2, {"skew": 7}).skewed == 21


def test_a_limit_that_is_a_sum_follows_its_terms(mixed: Catalogue) -> None:
    assert Timings(mixed).count("publications") == 4
    assert Timings(mixed, limits={"retries": 5}).count("publications") == 6
    assert Timings(mixed, limits={"retries": 5, "publications": 3}).count("publications") == 3


def test_one_rule_says_when_something_does_not_happen(mixed: Catalogue) -> None:
    timings = Timings(mixed, 0.2)
    assert timings.never("gone") == pytest.approx(12), "a give-up says so itself"
    assert timings.never("hop") == 4, "twice a latency"
    assert timings.never("taken_over") == pytest.approx(2 * timings.taken_over), "twice a bound"
    with pytest.raises(UnknownTimingError, match="'lease' is a seed"):
        timings.never("lease")
