"""Leader election (spec: TC Leader Election): quorum leases, terms, observed leader, renewal and step-down.

Whether this node leads is never a flag: every answer compares the local lease with the monotonic clock, so a node that
slept through its lease is no leader when it wakes. The local lease counts from the beginning of a successful round,
before any voter began to count, and so never outlasts the votes behind it.
"""

import asyncio
import contextlib
import random
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holdfast.reference.lockd.peers import PeerFailed
from holdfast.reference.lockd.seen import Seen, read_seen
from holdfast.reference.lockd.store import StoreUnavailable
from holdfast.reference.lockd.wire import Refusal, present

if TYPE_CHECKING:
    from holdfast.reference.lockd.node import Node

ROUND_LIMIT = 5.0
STAGGER = 0.5
BACKOFF, LONGEST_BACKOFF = 0.5, 3.0
SPEC_TTL = 15.0
SMALLEST_SHARE = 0.4


@dataclass(frozen=True)
class Leading:
    term: int
    expires: float


@dataclass(frozen=True)
class Tally:
    grants: int
    answered: int


class Election:
    def __init__(self, node: "Node") -> None:
        self.node = node
        self.clock = node.clock
        self.slot = node.slot
        self.peers: tuple[str, ...] | None = None
        self.voters: tuple[str, ...] = ()
        self.leading: Leading | None = None
        self.running_for = 0
        self.highest_heard = 0
        self.outranked = False
        self._outranked_rounds = 0
        self.wake = asyncio.Event()
        self._renew_due = 0.0
        self._lost = 0

    # The rules, each a seam.

    def quorum(self, n: int) -> int:
        return n // 2 + 1

    def next_term(self, own: int, reported: Sequence[int]) -> int:
        return max([own, *reported]) + 1

    def renew_every(self) -> float:
        return self.ttl() / 3

    def retry_after(self) -> float:
        return self.ttl() / 6

    def ttl(self) -> float:
        return self.node.settings.leader_ttl

    def round_limit(self) -> float:
        return max(0.2, min(ROUND_LIMIT, 2 * self.ttl() / 3) - 0.1)

    def share(self) -> float:
        """Pauses of ours shrink with the lease, but not below what tells two nodes apart."""
        return max(SMALLEST_SHARE, self.ttl() / SPEC_TTL)

    def stagger(self, peers: Sequence[str]) -> float:
        place = sorted(peers).index(self.me) if self.me in peers else 0
        return STAGGER * self.share() * place / len(peers)

    def backoff(self, lost: int) -> float:
        base = min(BACKOFF * (1 << min(lost, 8)), LONGEST_BACKOFF) * self.share()
        return base + random.uniform(0, base)

    def peer_set(self, members: Sequence[str], seeds: Sequence[str]) -> tuple[str, ...] | None:
        """The membership, once there is one; None while this node is not part of it."""
        if self.node.leave.paused:
            return None
        if not members:
            return tuple(sorted({*seeds, self.me}))
        return tuple(members) if self.me in members else None

    def won(self, tally: Tally, peers: Sequence[str]) -> bool:
        return tally.grants >= self.quorum(len(peers))

    def holds(self) -> bool:
        return self.leading is not None and self.still_leads(self.leading, self.clock.monotonic())

    def is_leader_record(self, seen: Seen) -> bool:
        return bool(seen.leader_endpoint) and seen.term > 0 and seen.expires_at > self.clock.wall_ms()

    def observed(self, answers: Iterable[Seen]) -> Seen | None:
        valid = [seen for seen in answers if self.is_leader_record(seen)]
        return max(valid, key=lambda seen: (seen.term, seen.expires_at), default=None)

    def is_me(self, seen: Seen) -> bool:
        return seen.leader_id == self.identity and seen.leader_endpoint == self.me

    def may_adopt(self, seen: Seen) -> bool:
        return self.is_me(seen)

    # What others ask.

    @property
    def me(self) -> str:
        return self.node.settings.self_endpoint

    @property
    def identity(self) -> str:
        return self.node.leader_id

    @property
    def enabled(self) -> bool:
        return self.peers is not None

    def require(self) -> None:
        if not self.enabled:
            raise self.unavailable()

    def unavailable(self) -> Refusal:
        return Refusal(503, "tc_unavailable", "No leader can be determined.")

    def current_leader(self) -> Seen | None:
        """The leader, while its lease is valid; a lease of our own counts only while we hold it."""
        if not self.enabled:
            return None
        if self.holds():
            assert self.leading is not None
            return Seen(self.identity, self.me, self.leading.term)
        held = self.slot.held
        seen = Seen(held.leader_id, held.endpoint, held.term, held.expires_at)
        if not self.slot.live() or not held.observed or self.is_me(seen):
            return None
        return seen

    def view(self) -> dict[str, Any]:
        """The record as it is; a vote shows no leader."""
        held = self.slot.held
        named = self.slot.names_leader()
        return present(
            {
                "leader_id": held.leader_id if named else "",
                "leader_endpoint": held.endpoint if named else "",
                "term": held.term,
                "expires_at": held.expires_at,
            }
        )

    # The loop.

    async def run(self) -> None:
        while True:
            self.wake.clear()
            pause = await self.step()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, pause)):
                    await self.wake.wait()

    async def step(self) -> float:
        """One decision of the loop; how long to wait for the next."""
        await self.refresh()
        if self.leading is not None:
            return await self.lead()
        if self.peers is None:
            return self.renew_every()
        if self.follows_soundly():
            return min(self.slot.remaining() - self.ttl() / 2, self.renew_every())
        return await self.seek(self.peers)

    def follows_soundly(self) -> bool:
        """A leader that renews is never below half its lease; below it, somebody may know more than we do."""
        return self.slot.live() and self.slot.held.observed and self.slot.remaining() > self.ttl() / 2

    async def refresh(self) -> None:
        with contextlib.suppress(StoreUnavailable):
            members = await self.node.members.active()
            self.peers = self.peer_set(members.endpoints, self.node.settings.join)
            self.voters = self.peers or self.voters

    async def look(self, peers: Sequence[str]) -> list[Seen]:
        """Ask the peers for a leader and follow the one they know; what they said."""
        answers = await asyncio.gather(*(self.ask(peer) for peer in peers if peer != self.me))
        # Kept: a restarted node may be alone in its list when it runs for its next term.
        self.highest_heard = max([self.highest_heard, *(seen.term for seen in answers)])
        found = self.observed(answers)
        if found is not None and self.slot.follow(found.leader_id, found.leader_endpoint, found.term, found.expires_at):
            self.followed(found)
        return list(answers)

    def followed(self, found: Seen) -> None:
        if self.may_adopt(found):
            self.adopt(found.term, self.slot.held.expires)

    def adopt(self, term: int, expires: float) -> None:
        self.node.events.emit("tc.leader.adopted", leader_id=self.identity, term=term)
        self.leading = Leading(term, expires)
        self._renew_due = self.clock.monotonic()

    async def ask(self, peer: str) -> Seen:
        try:
            reply = await self.node.peers.call("election", "GET", f"{peer}/v1/tc/leader", limit=self.round_limit())
        except PeerFailed:
            return Seen()
        return read_seen(reply.body) if reply.ok else Seen()

    async def seek(self, peers: tuple[str, ...]) -> float:
        answers = await self.look(peers)
        if not self.slot.live() and self.leading is None:
            await asyncio.sleep(self.stagger(peers))
        if self.leading is not None or self.peers != peers:
            return 0.0
        if self.slot.live():
            return min(self.slot.remaining(), self.retry_after())
        term = self.next_term(self.slot.held.term, [*(seen.term for seen in answers), self.highest_heard])
        return await self.run_for(term, peers)

    async def run_for(self, term: int, peers: tuple[str, ...]) -> float:
        started = self.clock.monotonic()
        self.running_for = term
        tally = await self.votes(term, peers)
        if self.won(tally, peers) and self.own_vote(term):
            started = self.clock.monotonic()
            if await self.confirmed(term, peers):
                self.running_for = 0
                return self.win(term, started, tally)
        await self.release_everywhere(term, peers)
        self.running_for = 0
        self._lost += 1
        self.node.events.emit(
            "tc.leader.election.failed", term=term, grants=tally.grants, quorum=self.quorum(len(peers))
        )
        return self.backoff(self._lost - 1)

    async def confirmed(self, term: int, peers: Sequence[str]) -> bool:
        """Nobody leads by votes alone: a vote that is released takes its term back, for somebody else to lead in."""
        tally = await self.count(self.renewals(term, peers), self.quorum(len(peers)))
        return self.won(tally, peers) and self.own_vote(term)

    def renewals(self, term: int, peers: Sequence[str]) -> list[Coroutine[Any, Any, bool]]:
        return [self.ask_renewal(peer, term) for peer in peers if peer != self.me]

    async def votes(self, term: int, peers: Sequence[str]) -> Tally:
        """The own slot is taken first and counts like any other vote; without it there is no round."""
        if not self.take_own_slot(term):
            return Tally(0, 0)
        others = [self.ask_vote(peer, term) for peer in peers if peer != self.me]
        return await self.count(others, self.quorum(len(peers)))

    def take_own_slot(self, term: int) -> bool:
        try:
            self.slot.acquire(self.identity, self.me, term, self.ttl())
        except Refusal:
            return False
        return True

    def own_vote(self, term: int) -> bool:
        held = self.slot.held
        return self.slot.live() and (held.leader_id, held.term) == (self.identity, term)

    async def count(self, calls: Sequence[Coroutine[Any, Any, bool]], needed: int) -> Tally:
        """Own vote plus grants. A quorum is enough; calls to slower peers go on beside it."""
        pending = {self.node.spawn(heard(call)) for call in calls}
        give_up = self.clock.monotonic() + self.round_limit()
        tally = Tally(1, 1)
        while pending and tally.grants < needed and (left := give_up - self.clock.monotonic()) > 0:
            done, pending = await asyncio.wait(pending, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            said = [task.result() for task in done]
            answered = tally.answered + sum(each is not None for each in said)
            tally = Tally(tally.grants + sum(map(bool, said)), answered)
        return tally

    async def ask_vote(self, peer: str, term: int) -> bool:
        body = {"candidate_id": self.identity, "candidate_endpoint": self.me, "term": term, "ttl_ms": self.ttl_ms()}
        return await self.lease_call(peer, "acquire", body)

    async def ask_renewal(self, peer: str, term: int) -> bool:
        """A peer that was restarted has no lease to renew, but a vote to give."""
        body = {"leader_id": self.identity, "term": term, "ttl_ms": self.ttl_ms()}
        return await self.lease_call(peer, "renew", body) or await self.ask_vote(peer, term)

    async def lease_call(self, peer: str, verb: str, body: dict[str, Any]) -> bool:
        url = f"{peer}/v1/tc/lease/{verb}"
        reply = await self.node.peers.call("election", "POST", url, body, limit=self.round_limit())
        if reply.body.get("error") == "tc_term_stale" and self.leading and self.leading.term == body["term"]:
            self.outranked = True
        return reply.ok

    def ttl_ms(self) -> int:
        return round(self.ttl() * 1000)

    def win(self, term: int, started: float, tally: Tally) -> float:
        self._lost = self._outranked_rounds = 0
        self.outranked = False
        self.leading = Leading(term, started + self.ttl())
        self.slot.renew(self.identity, term, self.leading.expires - self.clock.monotonic())
        self._renew_due = started + self.renew_every()
        self.node.events.emit(
            "tc.leader.elected", leader_id=self.identity, leader_endpoint=self.me, term=term, grants=tally.grants
        )
        return 0.0

    async def lead(self) -> float:
        leading, now = self.leading, self.clock.monotonic()
        if leading is None:
            return 0.0
        if self.peers is None or not self.still_leads(leading, now):
            await self.step_down(self.voters)
            return 0.0
        if now < self._renew_due:
            return min(self._renew_due, leading.expires) - now
        await self.renew(leading, self.peers, now)
        return 0.0

    def still_leads(self, leading: Leading, now: float) -> bool:
        """By the clock, and by the own slot: somebody may have released it in our name."""
        return leading.expires > now and self.own_vote(leading.term)

    async def renew(self, leading: Leading, peers: tuple[str, ...], started: float) -> None:
        if self.must_give_way():
            await self.step_down(peers)
            return
        self._renew_due = started + self.renew_every()
        tally = await self.count(self.renewals(leading.term, peers), self.quorum(len(peers)))
        if self.leading != leading:  # a leave came in between
            return
        if self.won(tally, peers) and self.own_vote(leading.term):
            self.renewed(leading, started)
        else:
            self.on_renew_failed(leading, tally, peers)

    def must_give_way(self) -> bool:
        """A member that was apart may know a higher term for good, and follows nobody below it. One that is only just
        running for a term has forgotten it before a lease is over.
        """
        self._outranked_rounds = self._outranked_rounds + 1 if self.outranked else 0
        self.outranked = False
        return self._outranked_rounds * self.renew_every() >= self.ttl()

    def renewed(self, leading: Leading, started: float) -> None:
        self.leading = Leading(leading.term, started + self.ttl())
        self.slot.renew(self.identity, leading.term, self.leading.expires - self.clock.monotonic())

    def on_renew_failed(self, leading: Leading, tally: Tally, peers: Sequence[str]) -> None:
        """May be tried again while the local lease lasts; the own slot is not renewed, so the lease runs out."""
        self._renew_due = self.clock.monotonic() + self.retry_after()
        self.node.events.emit(
            "tc.leader.renew.failed", term=leading.term, grants=tally.grants, quorum=self.quorum(len(peers))
        )

    async def step_down(self, peers: Sequence[str]) -> None:
        leading, self.leading = self.leading, None
        if leading is None:
            return
        self.node.events.emit("tc.leader.stepped_down", leader_id=self.identity, term=leading.term)
        await self.release_everywhere(leading.term, peers)

    async def resign(self) -> None:
        """A leader that leaves or stops frees its leases, and a candidate its votes, so that others need not wait."""
        if self.leading is not None:
            await self.step_down(self.voters)
        elif self.running_for:
            await self.release_everywhere(self.running_for, self.voters)

    async def release_everywhere(self, term: int, peers: Sequence[str]) -> None:
        with contextlib.suppress(Refusal):
            self.slot.release(self.identity, term)
        await asyncio.gather(*(self.release_at(peer, term) for peer in peers if peer != self.me))

    async def release_at(self, peer: str, term: int) -> None:
        body = {"leader_id": self.identity, "term": term}
        url = f"{peer}/v1/tc/lease/release"
        why = await self.node.peers.accepts("election", url, body, limit=self.round_limit())
        if why and not why.startswith("409"):  # a peer that holds no such lease has nothing to release
            self.node.events.emit("tc.leader.release.failed", endpoint=peer, term=term, error=why)


async def heard(call: Coroutine[Any, Any, bool]) -> bool | None:
    """Yes, no, or nothing at all."""
    try:
        return await call
    except PeerFailed:
        return None
