"""The lease slot, on a clock that the test sets."""

import pytest

from holdfast.reference.lockd.clock import Clock
from holdfast.reference.lockd.slot import Slot
from holdfast.reference.lockd.stranger import KeepsTerms
from holdfast.reference.lockd.wire import Refusal


class FakeClock(Clock):
    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def wall_ms(self) -> int:
        return 1_700_000_000_000 + round(self.now * 1000)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def slot(clock: FakeClock) -> Slot:
    return Slot(clock)


def test_a_vote_is_granted_for_the_ttl_that_was_asked_for(slot: Slot, clock: FakeClock) -> None:
    held = slot.acquire("x", "https://x:1", 1, 3.0)
    assert (held.expires, held.expires_at) == (clock.now + 3, clock.wall_ms() + 3000)
    assert slot.live()
    assert not slot.names_leader()


def test_the_same_candidate_extends_its_vote(slot: Slot, clock: FakeClock) -> None:
    first = slot.acquire("x", "https://x:1", 1, 3.0)
    clock.now += 1
    assert slot.acquire("x", "https://x:1", 1, 3.0).expires_at == first.expires_at + 1000


@pytest.mark.parametrize(("candidate", "term", "code"), [("y", 5, "tc_lease_active"), ("y", 6, "tc_lease_active")])
def test_a_live_lease_keeps_others_out_at_every_term(slot: Slot, candidate: str, term: int, code: str) -> None:
    slot.acquire("x", "https://x:1", 5, 3.0)
    with pytest.raises(Refusal, match=code):
        slot.acquire(candidate, "https://y:1", term, 3.0)
    assert slot.held.leader_id == "x"


def test_the_holder_itself_can_not_raise_the_term_of_a_live_lease(slot: Slot) -> None:
    slot.acquire("x", "https://x:1", 5, 3.0)
    with pytest.raises(Refusal, match="tc_lease_active"):
        slot.acquire("x", "https://x:1", 6, 3.0)


def test_a_lower_term_is_stale(slot: Slot) -> None:
    slot.acquire("x", "https://x:1", 5, 3.0)
    for attempt in (
        lambda: slot.acquire("y", "https://y:1", 4, 3.0),
        lambda: slot.renew("x", 4, 3.0),
        lambda: slot.release("x", 4),
    ):
        with pytest.raises(Refusal, match="tc_term_stale"):
            attempt()


def test_after_expiry_only_a_higher_term_is_granted(slot: Slot, clock: FakeClock) -> None:
    slot.acquire("x", "https://x:1", 5, 3.0)
    slot.renew("x", 5, 3.0)
    clock.now += 3
    assert not slot.live()
    with pytest.raises(Refusal, match="tc_lease_active"):
        slot.renew("x", 5, 3.0)
    with pytest.raises(Refusal, match="tc_term_stale"):
        slot.acquire("y", "https://y:1", 5, 3.0)
    assert slot.acquire("y", "https://y:1", 6, 3.0).term == 6


def test_a_vote_that_lapsed_unreleased_keeps_its_term(slot: Slot, clock: FakeClock) -> None:
    slot.acquire("x", "https://x:1", 5, 3.0)
    clock.now += 3
    with pytest.raises(Refusal, match="tc_term_stale"):
        slot.acquire("y", "https://y:1", 5, 3.0)


def test_a_released_vote_takes_its_term_back(slot: Slot) -> None:
    slot.acquire("x", "https://x:1", 5, 3.0)
    slot.release("x", 5)
    assert slot.held.term == 0
    assert slot.acquire("y", "https://y:1", 5, 3.0).term == 5


def test_a_released_lease_keeps_its_term(slot: Slot) -> None:
    slot.acquire("x", "https://x:1", 5, 3.0)
    slot.renew("x", 5, 3.0)
    slot.release("x", 5)
    assert slot.held.term == 5
    assert slot.acquire("y", "https://y:1", 6, 3.0).term == 6


@pytest.mark.parametrize(("leader", "term"), [("nobody", 5), ("x", 6)])
def test_a_release_needs_leader_and_term(slot: Slot, leader: str, term: int) -> None:
    slot.acquire("x", "https://x:1", 5, 3.0)
    with pytest.raises(Refusal, match="tc_lease_active"):
        slot.release(leader, term)
    assert slot.live()


def test_a_reported_leader_is_followed_until_its_expiry(slot: Slot, clock: FakeClock) -> None:
    assert slot.follow("x", "https://x:1", 50, clock.wall_ms() + 3000)
    assert slot.names_leader()
    clock.now += 2.999
    assert slot.live()
    clock.now += 0.001
    assert not slot.live()


def test_neither_a_lower_term_nor_a_second_leader_of_a_term_is_followed(slot: Slot, clock: FakeClock) -> None:
    ahead = clock.wall_ms() + 3000
    assert slot.follow("x", "https://x:1", 50, ahead)
    assert not slot.follow("y", "https://y:1", 49, ahead + 1000)
    assert not slot.follow("y", "https://y:1", 50, ahead + 1000)
    assert slot.follow("y", "https://y:1", 51, ahead)


def test_a_lapsed_report_is_not_followed(slot: Slot, clock: FakeClock) -> None:
    assert not slot.follow("x", "https://x:1", 50, clock.wall_ms())


def test_a_released_term_is_not_followed_again(slot: Slot, clock: FakeClock) -> None:
    slot.follow("x", "https://x:1", 50, clock.wall_ms() + 3000)
    slot.release("x", 50)
    assert not slot.follow("x", "https://x:1", 50, clock.wall_ms() + 3000)


def test_a_leader_is_followed_again_after_a_lost_candidacy(slot: Slot, clock: FakeClock) -> None:
    slot.follow("x", "https://x:1", 50, clock.wall_ms() + 3000)
    clock.now += 4
    slot.acquire("me", "https://me:1", 51, 3.0)
    slot.release("me", 51)
    assert slot.follow("x", "https://x:1", 50, clock.wall_ms() + 3000)


def test_a_node_that_led_alone_follows_another_leader_of_the_same_term(slot: Slot, clock: FakeClock) -> None:
    slot.acquire("me", "https://me:1", 1, 3.0)
    slot.renew("me", 1, 3.0)
    clock.now += 3
    slot.release("me", 1)
    assert slot.follow("x", "https://x:1", 1, clock.wall_ms() + 3000)


def test_a_stranger_keeps_a_lost_term_from_candidates_and_follows_a_leader_of_a_lower_one(clock: FakeClock) -> None:
    slot = KeepsTerms(clock)
    slot.follow("x", "https://x:1", 50, clock.wall_ms() + 3000)
    clock.now += 4
    slot.acquire("me", "https://me:1", 58, 3.0)
    slot.release("me", 58)
    with pytest.raises(Refusal, match="tc_term_stale"):
        slot.acquire("y", "https://y:1", 58, 3.0)
    ahead = clock.wall_ms() + 3000
    assert not slot.follow("y", "https://y:1", 49, ahead), "below a leader that was seen here"
    assert slot.held.term == 58
    assert slot.follow("y", "https://y:1", 51, ahead)
    assert slot.held.term == 51
