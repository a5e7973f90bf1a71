"""The lease slot of a node (spec: Terms and leases, Observed leader): its vote, or the leader it knows.

A slot that an acquire has set is a vote: it keeps others out, but names no leader. A renewal, or a peer that reports
the leader, makes it observed. A vote that is released takes its term back with it, since its candidate has lost; one
that merely lapses does not, since its candidate may have led for a moment.
"""

from dataclasses import dataclass, replace

from holdfast.reference.lockd.clock import Clock
from holdfast.reference.lockd.wire import Refusal


@dataclass(frozen=True)
class Held:
    leader_id: str = ""
    endpoint: str = ""
    term: int = 0
    expires: float = 0.0  # on the monotonic clock
    expires_at: int = 0  # the same moment in milliseconds of the wall clock, for the wire
    observed: bool = False


class Slot:
    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.held = Held()
        self.highest_observed = 0
        self.released = ("", 0)

    def live(self) -> bool:
        return bool(self.held.leader_id) and self.held.expires > self.clock.monotonic()

    def remaining(self) -> float:
        return self.held.expires - self.clock.monotonic() if self.live() else 0.0

    def names_leader(self) -> bool:
        return self.held.observed

    def acquire(self, candidate_id: str, endpoint: str, term: int, ttl: float) -> Held:
        self.check_acquire(candidate_id, term)
        same = self.held.leader_id == candidate_id and self.held.term == term
        granted = Held(candidate_id, endpoint, term, observed=same and self.held.observed)
        return self.hold(granted, ttl)

    def check_acquire(self, candidate_id: str, term: int) -> None:
        held = self.held
        if term < held.term:
            raise self.stale()
        if self.live() and (held.leader_id, held.term) != (candidate_id, term):
            raise self.active()
        if not self.live() and term == held.term:
            raise self.stale()

    def renew(self, leader_id: str, term: int, ttl: float) -> Held:
        self.check_renew(leader_id, term)
        held = self.hold(replace(self.held, observed=True), ttl)
        self.highest_observed = max(self.highest_observed, term)
        return held

    def check_renew(self, leader_id: str, term: int) -> None:
        if term < self.held.term:
            raise self.stale()
        if not self.live() or (self.held.leader_id, self.held.term) != (leader_id, term):
            raise self.active()

    def release(self, leader_id: str, term: int) -> None:
        self.check_release(leader_id, term)
        self.free()

    def check_release(self, leader_id: str, term: int) -> None:
        if term < self.held.term:
            raise self.stale()
        if (self.held.leader_id, self.held.term) != (leader_id, term):
            raise self.active()

    def free(self) -> None:
        if self.held.observed:
            self.released = (self.held.leader_id, self.held.term)
        self.held = Held(term=self.held.term if self.held.observed else self.highest_observed)

    def follow(self, leader_id: str, endpoint: str, term: int, expires_at: int) -> bool:
        """Take up a leader that a peer reports: never a lower term, never a second leader of a term."""
        ttl = (expires_at - self.clock.wall_ms()) / 1000
        if ttl <= 0 or not self.may_follow(leader_id, term, ttl):
            return False
        self.highest_observed = max(self.highest_observed, term)
        self.held = Held(leader_id, endpoint, term, self.clock.monotonic() + ttl, expires_at, observed=True)
        return True

    def may_follow(self, leader_id: str, term: int, ttl: float) -> bool:
        """What a leader has released is over, even if some peer has not heard of it."""
        held = self.held
        if term < held.term or (leader_id, term) == self.released:
            return False
        if term > held.term or not self.live():
            return True
        return held.leader_id == leader_id and (not held.observed or ttl > self.remaining())

    def hold(self, held: Held, ttl: float) -> Held:
        until = self.clock.wall_ms() + round(ttl * 1000)
        self.held = replace(held, expires=self.clock.monotonic() + ttl, expires_at=until)
        return self.held

    def stale(self) -> Refusal:
        return Refusal(409, "tc_term_stale", f"The term here is {self.held.term}.", self.known_endpoint())

    def active(self) -> Refusal:
        return Refusal(409, "tc_lease_active", "Another lease is held here.", self.known_endpoint())

    def known_endpoint(self) -> str:
        return self.held.endpoint if self.held.observed else ""
