"""Violations of terms, candidacies, observed leader and adoption."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from holdfast.reference.lockd.election import Election
from holdfast.reference.lockd.mutants.table import violates
from holdfast.reference.lockd.peers import Peers
from holdfast.reference.lockd.rounds import Tally
from holdfast.reference.lockd.seen import Seen
from holdfast.reference.lockd.slot import Held, Slot


@violates("TC-ELECT-01", 1, "The candidate increments its own last term without asking.")
class OwnTermOnly(Election):
    def next_term(self, own: int, reported: Sequence[int]) -> int:  # noqa: ARG002  # the seam's form
        return super().next_term(own, ())


@violates("TC-ELECT-01", 2, "The first answer is used instead of the maximum.")
class FirstAnswer(Election):
    def next_term(self, own: int, reported: Sequence[int]) -> int:
        return super().next_term(own, reported[:1])


@violates("TC-ELECT-01", 3, "The maximum itself is used, without the plus one.")
class NotPlusOne(Election):
    def next_term(self, own: int, reported: Sequence[int]) -> int:
        return max(1, super().next_term(own, reported) - 1)


@violates("TC-ELECT-02", 1, "Sending stops once a majority is collected.")
class StopsAtMajority(Election):
    async def votes(self, term: int, peers: Sequence[str]) -> Tally:
        grants = int(self.take_own_slot(term))
        for peer in peers:
            if grants >= self.quorum(len(peers)):
                break
            grants += peer != self.me and (await self.count([self.ask_vote(peer, term)], len(peers))).grants - 1
        return Tally(grants, grants)


@violates("TC-ELECT-02", 2, "The own lease slot is not taken.")
class OwnSlotFree(Election):
    def take_own_slot(self, term: int) -> bool:  # noqa: ARG002  # the seam's form
        return not self.slot.live()

    def own_vote(self, term: int) -> bool:
        if self.leading is None:
            super().take_own_slot(term)
        return super().own_vote(term)


@violates("TC-ELECT-02", 3, "Lease calls are sent without a client certificate.")
class NoCertificate(Peers):
    def open_session(self, certificate: str) -> Any:
        import ssl

        import aiohttp

        if certificate != "client":
            return super().open_session(certificate)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context, force_close=True, limit=0))


@violates("TC-ELECT-03", 1, "Unanimous grants are demanded.", also=("TC-STEP-02",))
class Unanimous(Election):
    def quorum(self, n: int) -> int:
        return n


@violates("TC-ELECT-03", 2, "Quorum is ceil(n/2), so half of the votes elect at n = 2 and n = 4.")
class HalfIsEnough(Election):
    def quorum(self, n: int) -> int:
        return (n + 1) // 2


@violates("TC-ELECT-04", 1, "A new leader reuses the old term.")
class ReusesTerm(Election):
    def next_term(self, own: int, reported: Sequence[int]) -> int:
        return max([1, own, *reported])

    def take_own_slot(self, term: int) -> bool:
        if not self.slot.live():
            self.slot.held = Held()
        return super().take_own_slot(term)


@violates(
    "TC-ELECT-04",
    2,
    "A node reports the last candidate it voted for as leader, so nodes disagree when votes split.",
)
class VoteIsLeader(Slot):
    def names_leader(self) -> bool:
        return True


@violates("TC-ELECT-07", 1, "Survivors elect at the first failed call to the leader.", also=("TC-TXN-02",))
class ElectsAtFailure(Election):
    async def step(self) -> float:
        await super().step()
        leader = self.current_leader()
        if leader and not self.is_me(leader) and not (await self.ask(leader.leader_endpoint)).term:
            self.slot.held = Held(term=leader.term)
        return 0.2


@violates("TC-ELECT-07", 2, "Survivors wait until the dead member has left the list.")
class WaitsForExpiry(Election):
    async def seek(self, peers: tuple[str, ...]) -> float:
        held = self.slot.held
        gone = held.endpoint == self.me or held.endpoint not in peers
        return await super().seek(peers) if gone else self.retry_after()


@violates(
    "TC-ELECT-08", 1, "Only direct lease calls set the leader; peers are not asked.", also=("TC-DATA-03", "TC-PEER-02")
)
class NobodyAsked(Election):
    def observed(self, answers: Iterable[Seen]) -> Seen | None:  # noqa: ARG002  # the seam's form
        return None


@violates("TC-ELECT-08", 2, "The node asks for votes on a timer despite the valid leader.")
class OnATimer(Election):
    async def step(self) -> float:
        pause = await super().step()
        if self.leading is None and self.peers and self.slot.live():
            await self.count(
                [self.ask_vote(peer, self.slot.held.term + 1) for peer in self.peers if peer != self.me], 99
            )
        return min(pause, self.renew_every())


@violates("TC-ELECT-08", 3, "An observed leader is followed for ever.")
class FollowedForEver(Slot):
    def follow(self, leader_id: str, endpoint: str, term: int, expires_at: int) -> bool:
        return super().follow(leader_id, endpoint, term, expires_at + 10**9)


@violates("TC-ELECT-08", 4, "An observed leader is dropped before its expiry.")
class DroppedEarly(Slot):
    def follow(self, leader_id: str, endpoint: str, term: int, expires_at: int) -> bool:
        followed = super().follow(leader_id, endpoint, term, expires_at)
        self.held = replace(self.held, expires=self.held.expires - self.remaining() / 2)
        return followed


@violates("TC-ELECT-09", 1, "The node ignores itself in peer answers and forces term t+1.")
class IgnoresItself(Election):
    def observed(self, answers: Iterable[Seen]) -> Seen | None:
        return super().observed(seen for seen in answers if not self.is_me(seen))


@violates("TC-ELECT-09", 2, "A lapsed own lease is adopted as well.")
class AdoptsLapsed(Election):
    async def look(self, peers: Sequence[str]) -> list[Seen]:
        answers = await super().look(peers)
        for seen in answers:
            if self.is_me(seen) and self.leading is None and seen.term >= self.slot.held.term:
                self.slot.held = Held(self.identity, self.me, seen.term)
                self.slot.hold(self.slot.held, self.ttl())
                self.slot.renew(self.identity, seen.term, self.ttl())
                self.adopt(seen.term, self.slot.held.expires)
        return answers
