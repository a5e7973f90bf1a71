"""A spy votes as a sound peer does: what it grants can't be held against the node that asked for it."""

import time

import pytest

from holdfast.conformance.lockd.ballot import Ballot

TTL = 60_000


def acquire(who: str, term: float, ttl: int = TTL) -> dict[str, object]:
    return {"candidate_id": who, "term": term, "ttl_ms": ttl}


def renew(who: str, term: float, ttl: int = TTL) -> dict[str, object]:
    return {"leader_id": who, "term": term, "ttl_ms": ttl}


@pytest.fixture
def ballot() -> Ballot:
    return Ballot()


def test_a_live_lease_belongs_to_its_holder(ballot: Ballot) -> None:
    assert ballot.acquire(acquire("a", 3)) == ""
    assert ballot.acquire(acquire("a", 3)) == ""
    assert ballot.acquire(acquire("b", 4)) == "tc_lease_active"
    assert ballot.acquire(acquire("b", 2)) == "tc_term_stale"
    assert ballot.renew(renew("a", 3)) == ""
    assert ballot.renew(renew("b", 3)) == "tc_lease_active"


def test_a_lapsed_lease_is_neither_renewed_nor_granted_again(ballot: Ballot) -> None:
    ballot.acquire(acquire("a", 3))
    ballot.renew(renew("a", 3, ttl=1))
    time.sleep(0.005)
    assert ballot.renew(renew("a", 3)) == "tc_lease_active"
    assert ballot.acquire(acquire("a", 3)) == "tc_term_stale"
    assert ballot.acquire(acquire("a", 2)) == "tc_term_stale"
    assert ballot.acquire(acquire("a", 4)) == ""


def test_a_vote_that_was_given_back_leaves_its_term_to_others(ballot: Ballot) -> None:
    ballot.acquire(acquire("a", 3))
    ballot.release({"leader_id": "b", "term": 3})
    assert ballot.live()
    ballot.release({"leader_id": "a", "term": 3})
    assert ballot.acquire(acquire("b", 3)) == ""


def test_a_lease_that_was_released_leaves_no_term(ballot: Ballot) -> None:
    ballot.renew(renew("a", 3))
    ballot.release({"leader_id": "a", "term": 3})
    assert ballot.acquire(acquire("b", 3)) == "tc_term_stale"
    assert ballot.acquire(acquire("b", 4)) == ""


def test_a_leader_that_it_did_not_vote_for_is_renewed(ballot: Ballot) -> None:
    assert ballot.renew(renew("a", 7.0)) == ""
    assert ballot.led == 7
