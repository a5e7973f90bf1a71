"""Violations of renewal, step-down and quorum loss."""

import asyncio
from collections.abc import Sequence

from holdfast.reference.lockd.election import Election
from holdfast.reference.lockd.mutants.table import violates
from holdfast.reference.lockd.rounds import Leading, Tally
from holdfast.reference.lockd.slot import Held


class KeepsLeading(Election):
    """Goes on leading after the end of its lease."""

    def holds(self) -> bool:
        return self.leading is not None

    def still_leads(self, leading: Leading, now: float) -> bool:  # noqa: ARG002  # the seam's form
        return True


class OwnVoteWill(Election):
    """Extends the lease after a failed round too."""

    def on_renew_failed(self, leading: Leading, tally: Tally, peers: Sequence[str]) -> None:
        super().on_renew_failed(leading, tally, peers)
        if self.own_vote(leading.term):
            self.renewed(leading, self.clock.monotonic())


@violates("TC-STEP-01", 1, "Renewal is sent once per leader_ttl.")
class OncePerTtl(Election):
    def renew_every(self) -> float:
        return self.ttl() - 0.2


@violates("TC-STEP-01", 2, "Each renewal increments the term.")
class TermPerRenewal(Election):
    def renewed(self, leading: Leading, started: float) -> None:
        self.leading = Leading(leading.term + 1, started + self.ttl())
        self.slot.held = Held(self.identity, self.me, leading.term + 1, observed=True)
        self.slot.hold(self.slot.held, self.ttl())


@violates("TC-STEP-02", 1, "Any failed renewal triggers step-down.")
class AnyFailure(Election):
    def won(self, tally: Tally, peers: Sequence[str]) -> bool:
        return super().won(tally, peers) and (self.leading is None or tally.grants == len(peers))

    async def count(self, calls: Sequence[object], needed: int) -> Tally:
        return await super().count(calls, 99 if self.leading else needed)  # type: ignore[arg-type]  # handed on


@violates(
    "TC-STEP-03", 1, "The leader goes on deciding until another leader shows up.", also=("TC-STEP-05", "TC-STEP-07")
)
class UntilAnother(KeepsLeading):
    pass


@violates("TC-STEP-03", 2, "The own vote alone keeps the lease alive.", also=("TC-STEP-04", "TC-STEP-05", "TC-STEP-08"))
class OwnVoteKeeps(OwnVoteWill):
    pass


@violates("TC-STEP-04", 1, "The leader just stops, without a release.")
class NoRelease(Election):
    async def step_down(self, peers: Sequence[str]) -> None:
        await super().step_down(() if not self.holds() else peers)


@violates("TC-STEP-04", 2, "A release error aborts the step-down.")
class ReleaseAborts(KeepsLeading):
    def still_leads(self, leading: Leading, now: float) -> bool:
        return Election.still_leads(self, leading, now)

    async def step_down(self, peers: Sequence[str]) -> None:
        leading = self.leading
        await super().step_down(peers)
        if leading is not None and self.refused:
            self.slot.held = Held(self.identity, self.me, leading.term, observed=True)
            self.slot.hold(self.slot.held, self.ttl())
            self.leading = Leading(leading.term, self.slot.held.expires)

    refused = False

    async def release_at(self, peer: str, term: int) -> None:
        body = {"leader_id": self.identity, "term": term}
        self.refused = bool(await self.node.peers.accepts("election", f"{peer}/v1/tc/lease/release", body))


@violates("TC-STEP-04", 3, "A failed release is swallowed without a log line.")
class Swallowed(Election):
    async def release_at(self, peer: str, term: int) -> None:
        body = {"leader_id": self.identity, "term": term}
        await self.node.peers.accepts("election", f"{peer}/v1/tc/lease/release", body, limit=self.round_limit())


@violates("TC-STEP-05", 1, "The survivor re-elects itself with its own vote.")
class OwnVoteElects(Election):
    def won(self, tally: Tally, peers: Sequence[str]) -> bool:  # noqa: ARG002  # the seam's form
        return tally.grants >= 1


@violates("TC-STEP-05", 2, "Quorum counts only the peers that answered.")
class AnsweredOnly(Election):
    def won(self, tally: Tally, peers: Sequence[str]) -> bool:  # noqa: ARG002  # the seam's form
        return tally.grants >= self.quorum(tally.answered)


@violates("TC-STEP-05", 3, "Quorum stays at the largest membership ever seen.", also=("TC-PEER-01",))
class LargestEver(Election):
    largest = 0

    def quorum(self, n: int) -> int:
        self.largest = max(self.largest, n)
        return super().quorum(self.largest)


@violates("TC-STEP-06", 1, "The old leader resumes with the old term when a peer is back.")
class ResumesOldTerm(Election):
    old = 0

    async def step_down(self, peers: Sequence[str]) -> None:
        self.old = self.leading.term if self.leading else 0
        await super().step_down(peers)

    def next_term(self, own: int, reported: Sequence[int]) -> int:
        if self.old and self.slot.held.term <= self.old:
            self.slot.held = Held()
        return self.old or super().next_term(own, reported)


@violates("TC-STEP-07", 1, "An is_leader flag is trusted without checking the expiry.", also=("TC-STEP-03",))
class FlagTrusted(Election):
    def holds(self) -> bool:
        return self.leading is not None

    async def lead(self) -> float:
        if self.leading is not None and not self.still_leads(self.leading, self.clock.monotonic()):
            await asyncio.sleep(self.renew_every())  # the flag is cleared at some later turn
        return await super().lead()
