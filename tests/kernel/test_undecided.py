"""What an undecided timing means for a check: nothing is said, unless something worse was seen before it."""

import asyncio

import pytest

from holdfast.check.audit import Audit
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.spec.verdict import Verdict
from tests.kernel.attempts import Calm, outcome_of

START = Moment(0.0, 0.0)


def _past(T: SpecTime) -> Moment:
    return Moment(T.handover_max + 1, T.handover_max + 1)


def _around(T: SpecTime, seconds: float) -> Moment:
    return Moment(seconds - 0.1, seconds + 0.1)


async def warns_and_then_straddles_a_bound(T: SpecTime) -> None:
    T.at_most("handover_max", since=START, seen=_past(T))
    T.at_most("handover_max", since=START, seen=_around(T, T.handover_max))


async def only_straddles_a_bound(T: SpecTime) -> None:
    T.at_most("handover_max", since=START, seen=_around(T, T.handover_max))


async def warns_and_then_straddles_what_the_spec_demands(T: SpecTime) -> None:
    T.at_most("handover_max", since=START, seen=_past(T))
    T.at_most("leader_ttl", since=START, seen=_around(T, T.leader_ttl))


@pytest.mark.parametrize(
    ("check", "verdict"),
    [
        (warns_and_then_straddles_a_bound, Verdict.WARN),
        (only_straddles_a_bound, Verdict.INCONCLUSIVE),
        (warns_and_then_straddles_what_the_spec_demands, Verdict.INCONCLUSIVE),
    ],
)
def test_an_undecided_bound_does_not_hide_one_that_was_missed(check: object, verdict: Verdict) -> None:
    assert asyncio.run(outcome_of(check, Calm(), Audit())).verdict is verdict
