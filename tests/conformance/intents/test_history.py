"""The history of a scenario: what is sure about sessions that polls saw, and what the invariants make of it."""

import math

import pytest

from holdfast.check.history import History
from holdfast.check.invariants import Judged, at_most
from holdfast.check.timeline import Moment
from holdfast.conformance.intents.keys import Lease
from holdfast.conformance.intents.scenarios.history import END, GIVEN, OVER, RUN, Life, Lives
from holdfast.conformance.intents.wire import Answer

CHANNEL, PROFILE = "channel", "low"


def life(name: str, *ready: float, named: float = 0.0, ended: float = math.inf, cut_off: float = math.inf) -> Life:
    """A session that was named once, and that polls showed running at these moments."""
    session = Life(name, CHANNEL, PROFILE, [Moment(named, named + 0.1)], cut_off=cut_off)
    for sent in ready:
        session.polled(Answer(200, {}, {"state": "READY"}, "", sent=sent, received=sent + 0.1), runs=True)
    if ended < math.inf:
        session.polled(Answer(410, {}, {"state": "STOPPED"}, "", sent=ended - 0.1, received=ended), runs=False)
    return session


def lives(*sessions: Life, grace: float = 0.0) -> Lives:
    return Lives(grace, {each.id: each for each in sessions})


def running(history: History, count: int = 1) -> Judged:
    return at_most(history, count, acquire=RUN, release=END).judged


def known(history: History) -> Judged:
    return at_most(history, 1, acquire=GIVEN, release=OVER).judged


def test_two_sessions_that_run_on_one_channel_at_once_are_one_too_many() -> None:
    both = lives(life("a", 1, 5), life("b", 2, 4, named=1.5))
    assert running(both.of_channels()) is Judged.VIOLATED
    assert running(both.of_slots(), 2) is Judged.HOLDS
    assert running(both.of_slots(), 1) is Judged.VIOLATED


def test_one_session_after_the_other_is_legal() -> None:
    assert running(lives(life("a", 1, 2, ended=3), life("b", 4, 6, named=3)).of_channels()) is Judged.HOLDS


@pytest.mark.parametrize("old", [life("a", 1, 1.5, 5, cut_off=1.8), life("a", 1)], ids=["stopped", "seen once"])
def test_a_session_that_may_be_over_proves_nothing_later(old: Life) -> None:
    assert running(lives(old, life("b", 3, 4, named=2)).of_channels()) is Judged.HOLDS


def test_a_worker_that_takes_a_while_to_notice_its_loss_is_excused_for_so_long() -> None:
    sessions = life("a", 1, 3, 5), life("b", 4.5, 8, named=4)
    assert running(lives(*sessions).of_channels()) is Judged.VIOLATED
    assert running(lives(*sessions, grace=1).of_channels()) is Judged.HOLDS
    assert running(lives(life("a", 1, 3, 7), life("b", 4.5, 8, named=4), grace=1).of_channels()) is Judged.VIOLATED


def test_two_live_sessions_under_one_key_are_one_too_many() -> None:
    assert known(lives(life("a", 1, 5), life("b", 4, named=2)).of_keys()) is Judged.VIOLATED
    assert known(lives(life("a", 1, 1.9, ended=2), life("b", 4, named=3)).of_keys()) is Judged.HOLDS


def test_a_lease_is_left_over_once_it_outlives_its_owner_by_its_own_life() -> None:
    session = lives(life("a", 1, ended=2))
    session.leases = [("lease:service:x", Lease("a", 1.0, Moment(at, at))) for at in (1.5, 7.5, 8.5)]
    assert list(session.left_over(6)) == ["lease:service:x of a, 6.5 s after its end"]
