"""Violations of the election's peer set."""

from collections.abc import Sequence
from typing import Any

from holdfast.reference.lockd.boot import Boot
from holdfast.reference.lockd.election import Election
from holdfast.reference.lockd.http import Call, Http
from holdfast.reference.lockd.mutants.table import violates


@violates("TC-PEER-01", 1, "Election peers are the join list.")
class SeedsAsPeers(Election):
    def peer_set(self, members: Sequence[str], seeds: Sequence[str]) -> tuple[str, ...] | None:  # noqa: ARG002  # the seam's form
        return super().peer_set((), seeds)


@violates("TC-PEER-01", 2, "Quorum is computed over join list and membership together (3 of 5), so no leader appears.")
class SeedsCount(Election):
    def peer_set(self, members: Sequence[str], seeds: Sequence[str]) -> tuple[str, ...] | None:
        found = super().peer_set(members, seeds)
        return found and tuple(sorted({*found, *seeds}))


@violates("TC-PEER-01", 3, "Election peers are frozen at startup.")
class Frozen(Election):
    first: tuple[str, ...] | None = None

    def peer_set(self, members: Sequence[str], seeds: Sequence[str]) -> tuple[str, ...] | None:
        self.first = self.first or super().peer_set(members, seeds)
        return self.first


@violates("TC-PEER-01", 4, "New members are added but members that left stay peers.")
class NobodyGoes(Election):
    known: frozenset[str] = frozenset()

    def peer_set(self, members: Sequence[str], seeds: Sequence[str]) -> tuple[str, ...] | None:
        found = super().peer_set(members, seeds)
        self.known |= {*(found or ())}
        return found and tuple(sorted(self.known))


@violates("TC-PEER-02", 1, "Before membership exists the peer set is the node alone, so it leads itself at term 1.")
class AloneAtBoot(Boot):
    async def look_around(self) -> None:
        """Asks no seed."""


@violates("TC-PEER-03", 1, "An excluded node falls back to join endpoints plus itself and keeps electing.")
class FallsBack(Election):
    def peer_set(self, members: Sequence[str], seeds: Sequence[str]) -> tuple[str, ...] | None:
        return tuple(members) if self.me in members else tuple(sorted({*seeds, self.me}))


@violates("TC-PEER-03", 2, "An excluded node goes on granting votes to others.")
class StillVotes(Http):
    async def acquire(self, call: Call) -> Any:
        peers = self.node.election.peers
        self.node.election.peers = peers or ()
        try:
            return await super().acquire(call)
        finally:
            self.node.election.peers = peers
