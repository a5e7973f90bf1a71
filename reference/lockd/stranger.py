"""The lockd node as a stranger: dialects on every connection, terms with gaps, answers late within the lease's bounds.

A candidate's term is one above the highest that any peer knows, itself included (spec: Terms and leases). The document
leaves open whether a vote that is released gives its term back. In a stranger it may not, so each round that fails
uses a term up, and the terms of leaders have gaps. It does not leave open whom a node follows: a valid leader that a
peer reports suppresses elections (spec: Observed leader), also for a node that was cut off and has used up higher terms
alone. So a term that was used up goes to no other candidate, and keeps no leader out.

An answer may be late by a small part of the lease: far less than a round of votes waits for it, and less than every
tolerance with which an expiry is compared.
"""

from holdfast.reference.lockd.components import Components
from holdfast.reference.lockd.settings import Settings
from holdfast.reference.lockd.slot import Held, Slot
from holdfast.reference.shared.stranger.voice import Stranger

LATE_SHARE = 0.03


class KeepsTerms(Slot):
    def free(self) -> None:
        term = self.held.term
        super().free()
        self.held = Held(term=term)

    def may_follow(self, leader_id: str, term: int, ttl: float) -> bool:
        if self.held.leader_id:
            return super().may_follow(leader_id, term, ttl)
        kept, self.held = self.held, Held(term=self.highest_observed)
        try:
            return super().may_follow(leader_id, term, ttl)
        finally:
            self.held = kept


def estrange(components: Components, settings: Settings, name: str) -> Stranger:
    """Makes the components those of a stranger with this name, `SEED:NODE`."""
    stranger = Stranger(name, lambda _path: LATE_SHARE * settings.leader_ttl, _other_status)
    components.speech = stranger
    if stranger.traits.gaps:
        # In front of whichever class the node has, a mutant's too.
        components.slot = type("Slot", (KeepsTerms, components.slot), {})
    return stranger


def _other_status(_method: str, _path: str, status: int) -> int:
    """A body that is too large may be called so, or just a bad request: the contract has both for every such call."""
    return 400 if status == 413 else status
