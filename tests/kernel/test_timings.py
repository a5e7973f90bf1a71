import pytest

from holdfast.catalogue import builtin
from holdfast.timings import Timings, UnknownTimingError

ADMISSION = builtin("admission")


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
