"""Who votes, what a quorum is, and how a round of lease calls is counted (spec: Peer set selection, Terms and leases).

Every node has one lease slot (`slot.py`). A round sends the same lease call to all peers at once and counts the slots
that granted it. Three rules hold for every round, of a candidate and of a leader alike:

- The own slot is a voter like any other, reached without a call. A round that loses it counts for nothing, whatever
  the peers said, because a node may not lead in a term that its own slot does not hold.
- A quorum is more than half of the peers that were asked, reachable or not. Two quorums of one peer set have a voter
  in common, and a slot holds one lease at a time: so two nodes cannot lead in the same term.
- The round ends as soon as the quorum is there, or after `round_limit`. Calls to slower peers are not cancelled,
  because their slots should learn of the lease too.

The second rule needs equal peer sets. While the lists of the members differ, after a cold start or a long partition,
quorums of different sets may be disjoint; the spec accepts that until membership has converged.

`peers` is the peer set at this moment, or None while the election is off; `refresh` and a leave write it. `voters` is
the last peer set that was not None: the nodes that may still hold a lease which this node has to release.
"""

import asyncio
import contextlib
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holdfast.reference.lockd.peers import PeerFailed
from holdfast.reference.lockd.store import StoreUnavailable
from holdfast.reference.lockd.wire import Refusal

if TYPE_CHECKING:
    from holdfast.reference.lockd.node import Node

ROUND_LIMIT = 5.0


@dataclass(frozen=True)
class Leading:
    """A leadership of this node. `expires` is on the monotonic clock."""

    term: int
    expires: float


@dataclass(frozen=True)
class Tally:
    """The votes of one round, the own one included."""

    grants: int
    answered: int


class Rounds:
    def __init__(self, node: "Node") -> None:
        self.node = node
        self.clock = node.clock
        self.slot = node.slot
        self.peers: tuple[str, ...] | None = None
        self.voters: tuple[str, ...] = ()
        self.leading: Leading | None = None
        self.outranked = False

    @property
    def me(self) -> str:
        return self.node.settings.self_endpoint

    @property
    def identity(self) -> str:
        return self.node.leader_id

    def ttl(self) -> float:
        return self.node.settings.leader_ttl

    def ttl_ms(self) -> int:
        return round(self.ttl() * 1000)

    def round_limit(self) -> float:
        return max(0.2, min(ROUND_LIMIT, 2 * self.ttl() / 3) - 0.1)

    def quorum(self, n: int) -> int:
        return n // 2 + 1

    def won(self, tally: Tally, peers: Sequence[str]) -> bool:
        return tally.grants >= self.quorum(len(peers))

    # The peer set.

    def peer_set(self, members: Sequence[str], seeds: Sequence[str]) -> tuple[str, ...] | None:
        """Returns the membership, seeds and self while there is none, or None while this node is not part of it."""
        if self.node.leave.paused:
            return None
        if not members:
            return tuple(sorted({*seeds, self.me}))
        return tuple(members) if self.me in members else None

    async def refresh(self) -> None:
        """Reads the peer set again; while the store cannot be read, the last one stays in force."""
        with contextlib.suppress(StoreUnavailable):
            members = await self.node.members.active()
            self.peers = self.peer_set(members.endpoints, self.node.settings.join)
            self.voters = self.peers or self.voters

    # Votes.

    def take_own_slot(self, term: int) -> bool:
        try:
            self.slot.acquire(self.identity, self.me, term, self.ttl())
        except Refusal:
            return False
        return True

    def own_vote(self, term: int) -> bool:
        """Returns whether the own slot holds this node's lease of the term now: it can be lost during any await."""
        held = self.slot.held
        return self.slot.live() and (held.leader_id, held.term) == (self.identity, term)

    async def votes(self, term: int, peers: Sequence[str]) -> Tally:
        """Takes the own slot, then asks the peers for theirs; asks no peer when the own slot is refused."""
        if not self.take_own_slot(term):
            return Tally(0, 0)
        others = [self.ask_vote(peer, term) for peer in peers if peer != self.me]
        return await self.count(others, self.quorum(len(peers)))

    def renewals(self, term: int, peers: Sequence[str]) -> list[Coroutine[Any, Any, bool]]:
        return [self.ask_renewal(peer, term) for peer in peers if peer != self.me]

    async def count(self, calls: Sequence[Coroutine[Any, Any, bool]], needed: int) -> Tally:
        """Counts the own vote and the grants until there are enough; slower calls go on in the background."""
        pending = {self.node.spawn(heard(call)) for call in calls}
        give_up = self.clock.monotonic() + self.round_limit()
        tally = Tally(1, 1)
        while pending and tally.grants < needed and (left := give_up - self.clock.monotonic()) > 0:
            done, pending = await asyncio.wait(pending, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            said = [task.result() for task in done]
            answered = tally.answered + sum(each is not None for each in said)
            tally = Tally(tally.grants + sum(map(bool, said)), answered)
        return tally

    # Lease calls.

    async def ask_vote(self, peer: str, term: int) -> bool:
        body = {"candidate_id": self.identity, "candidate_endpoint": self.me, "term": term, "ttl_ms": self.ttl_ms()}
        return await self.lease_call(peer, "acquire", body)

    async def ask_renewal(self, peer: str, term: int) -> bool:
        """Asks for a vote where the renewal is refused: a peer that was restarted has lost the lease, not its vote."""
        body = {"leader_id": self.identity, "term": term, "ttl_ms": self.ttl_ms()}
        return await self.lease_call(peer, "renew", body) or await self.ask_vote(peer, term)

    async def lease_call(self, peer: str, verb: str, body: dict[str, Any]) -> bool:
        url = f"{peer}/v1/tc/lease/{verb}"
        reply = await self.node.peers.call("election", "POST", url, body, limit=self.round_limit())
        if reply.body.get("error") == "tc_term_stale" and self.leading and self.leading.term == body["term"]:
            self.outranked = True
        return reply.ok

    async def release_everywhere(self, term: int, peers: Sequence[str]) -> None:
        with contextlib.suppress(Refusal):
            self.slot.release(self.identity, term)
        await asyncio.gather(*(self.release_at(peer, term) for peer in peers if peer != self.me))

    async def release_at(self, peer: str, term: int) -> None:
        """Releases the lease at one peer. A failure is logged and changes nothing, for the lease there runs out."""
        body = {"leader_id": self.identity, "term": term}
        url = f"{peer}/v1/tc/lease/release"
        why = await self.node.peers.accepts("election", url, body, limit=self.round_limit())
        if why and not why.startswith("409"):  # a peer that holds no such lease has nothing to release
            self.node.events.emit("tc.leader.release.failed", endpoint=peer, term=term, error=why)


async def heard(call: Coroutine[Any, Any, bool]) -> bool | None:
    """Returns the answer of a peer, None when there was none."""
    try:
        return await call
    except PeerFailed:
        return None
