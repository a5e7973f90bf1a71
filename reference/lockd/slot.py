"""The lease slot of a node (spec: Terms and leases, Observed leader): its vote, or the leader it knows.

A slot is in one of three states:

- free: no lease, only a term;
- a vote, set by an acquire: it keeps other candidates out, but names no leader, because its candidate may still lose;
- observed, set by a renewal or by a peer that reports the leader: it keeps others out and names the leader.

A vote or an observed lease lapses when its time is over, and then keeps no candidate out. Its term stays: an acquire
needs a higher one, so a term is granted to one candidate only.

The term of a slot never falls, with one exception. A vote that is released falls back to the highest term that was
ever observed here, since its candidate has lost and never led in it; otherwise each lost round would raise the terms,
and a node that lost alone could never again follow the leader of a lower term. A vote that merely lapses keeps its
term: its candidate may have led, with renewals that never arrived here.

Expiry is judged on the monotonic clock. The same moment on the wall clock is kept for the wire, since a monotonic
clock means nothing to another node.

The slot belongs to the process and is not stored (spec: Leader lease, in-memory). A restarted voter has forgotten its
votes, which is why a node looks around before it serves (`boot.py`). All methods run to their end without an await,
so callers need no lock.
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
        """Takes up a leader that a peer reports, until the expiry in the report; returns whether it did."""
        ttl = (expires_at - self.clock.wall_ms()) / 1000
        if ttl <= 0 or not self.may_follow(leader_id, term, ttl):
            return False
        self.highest_observed = max(self.highest_observed, term)
        self.held = Held(leader_id, endpoint, term, self.clock.monotonic() + ttl, expires_at, observed=True)
        return True

    def may_follow(self, leader_id: str, term: int, ttl: float) -> bool:
        """Refuses a lower term, a second leader of a live term, and a lease that its leader has released here.

        A peer that missed the release goes on reporting that lease until it lapses there.
        """
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
