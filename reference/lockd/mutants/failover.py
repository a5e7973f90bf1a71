"""Violations of the time within which survivors have a new leader."""

import random
from collections.abc import Sequence

from holdfast.reference.lockd.election import Election
from holdfast.reference.lockd.mutants.table import violates


@violates(
    "TC-ELECT-10",
    1,
    "The random pause before a candidacy is drawn from 0 to 2 leader_ttl, so part of the recoveries come far too late.",
)
class LongPause(Election):
    def stagger(self, peers: Sequence[str]) -> float:
        return random.uniform(0, 2 * self.ttl()) if len(peers) > 1 else 0.0


@violates(
    "TC-ELECT-10",
    2,
    "Candidates neither stagger nor draw random pauses, so in part of the kills the survivors keep splitting the vote.",
)
class NoPause(Election):
    def stagger(self, peers: Sequence[str]) -> float:
        return self.until_the_beat() if len(peers) > 1 else 0.0

    def backoff(self, lost: int) -> float:  # noqa: ARG002  # the seam's form
        return self.until_the_beat()

    def until_the_beat(self) -> float:
        """Returns the time to a moment that is the same on all nodes, so that all of them run at once."""
        period = self.ttl() / 6
        return period - self.clock.wall_ms() / 1000 % period
