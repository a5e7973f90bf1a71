"""Violations of the voter (spec: Terms and leases): what it grants, protects and refuses."""

from typing import Any

from holdfast.reference.lockd.http import Http
from holdfast.reference.lockd.mutants.table import violates
from holdfast.reference.lockd.slot import Held, Slot


@violates("TC-ELECT-05", 1, "Votes are granted irrespective of term when no lease is live.")
class AnyTermWhenFree(Slot):
    def check_acquire(self, candidate_id: str, term: int) -> None:
        if self.live():
            super().check_acquire(candidate_id, term)


@violates("TC-ELECT-05", 2, "A higher term steals a live lease.")
class HigherSteals(Slot):
    def check_acquire(self, candidate_id: str, term: int) -> None:
        if term <= self.held.term:
            super().check_acquire(candidate_id, term)


@violates("TC-ELECT-05", 3, "An equal term is granted after expiry.")
class EqualAfterExpiry(Slot):
    def check_acquire(self, candidate_id: str, term: int) -> None:
        if self.live() or term != self.held.term:
            super().check_acquire(candidate_id, term)


@violates("TC-ELECT-05", 4, "Any renew is accepted and resurrects a lapsed lease.")
class AnyRenew(Slot):
    def check_renew(self, leader_id: str, term: int) -> None:
        if self.held.leader_id != leader_id:
            self.held = Held(leader_id, self.held.endpoint, term)


@violates("TC-ELECT-06", 1, "The voter substitutes its own TTL for the requested one.")
class OwnTtl(Http):
    def term_and_ttl(self, body: Any) -> tuple[int, float]:
        return super().term_and_ttl(body)[0], self.node.settings.leader_ttl


@violates("TC-ELECT-06", 2, "The holder's repeated request answers 409.")
class NotTwice(Slot):
    def check_acquire(self, candidate_id: str, term: int) -> None:
        super().check_acquire(candidate_id, term)
        if self.live():
            raise self.active()
