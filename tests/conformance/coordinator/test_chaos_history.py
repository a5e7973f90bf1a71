"""The history of a chaos scenario: which values the lock may have had, and which jobs had two owners."""

from holdfast.check.timeline import Moment
from holdfast.conformance.coordinator.lock import Sample
from holdfast.conformance.coordinator.scenarios.history import LockHistory, Owners


def lock(*values: str, left: float | None = 5.0) -> LockHistory:
    """One sample each second."""
    return LockHistory([Sample(value, left, Moment(at, at + 0.1)) for at, value in enumerate(values)])


def test_between_two_equal_samples_the_value_is_known() -> None:
    assert lock("a", "a", "a", "b", "b").held_at(Moment(1.5, 1.5), 0.2) == {"a"}


def test_where_the_value_changed_both_may_have_been_there() -> None:
    assert lock("a", "a", "b", "b").held_at(Moment(1.5, 1.5), 0.2) == {"a", "b"}
    assert lock("a", "a", "b", "b").held_at(Moment(0.7, 0.7), 0.2) == {"a"}
    assert lock("a", "a", "b", "b").held_at(Moment(0.7, 0.7), 1.0) == {"a", "b"}


def test_without_a_value_nobody_led() -> None:
    assert lock("a", "", "", "b").held_at(Moment(1.5, 1.5), 0.2) == set()


def test_nothing_is_known_past_the_samples() -> None:
    history = lock("a", "a", "a")
    assert history.known_at(Moment(1, 1), 0.2)
    assert not history.known_at(Moment(2.5, 2.5), 0.2)
    assert not history.known_at(Moment(0.1, 0.1), 0.2)
    assert not LockHistory().known_at(Moment(1, 1), 0.2)


def test_a_value_without_expiry_shows_in_two_samples() -> None:
    assert not list(lock("a", "a").endless())
    assert list(lock("a", "a", left=None).endless()) == ["a, without expiry"]
    assert not list(lock("a", "b", left=None).endless())


def told(owners: Owners, *looks: dict[str, list[str]]) -> list[str]:
    for at, look in enumerate(looks):
        owners.told(look, Moment(at, at + 0.1))
    return list(owners.doubled(1.5))


def test_a_job_that_moves_has_two_owners_for_a_moment_only() -> None:
    assert not told(Owners(), {"a": ["j"], "b": []}, {"a": ["j"], "b": ["j"]}, {"a": [], "b": ["j"]})


def test_a_job_that_stays_two_owners_is_found_also_when_it_ended() -> None:
    both, one = {"a": ["j"], "b": ["j"]}, {"a": ["j"], "b": []}
    assert told(Owners(), both, both, both, both) == ["j was a's and b's for 2.9 s"]
    assert told(Owners(), both, both, both, both, one) == ["j was a's and b's for 2.9 s"]
