"""What a node knows about the leader (spec: Observed leader, Leader lease).

The leader that a node knows is in its slot. Lease calls of the leader write it there (`http.py`), and so does `look`,
which asks the peers and follows the valid leader with the highest term. A report counts only with a leader's
endpoint, a term and an expiry in the future; and `Slot.follow` refuses lower terms, a second leader of a term that is
live here, and a leader that has released its lease.

While a followed leader's lease is valid, this node starts no election. It looks around again once less than half of
that lease is left: a leader renews every third, so by then a renewal is missing, and a peer may have one that this
node did not get. If no peer has, the lease runs out here and the node becomes a candidate.

A node that hears of itself as leader has been restarted within its own lease. It adopts that lease, because its peers
refuse every other term until it lapses.

`current_leader` is the answer for decisions: a leader, and only while its lease is valid. `view` is the answer for
peers: the slot as it is, lapsed or not, because a candidate needs the term of a lapsed lease too.
"""

import asyncio
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from holdfast.reference.lockd.leadership import Leadership
from holdfast.reference.lockd.peers import PeerFailed
from holdfast.reference.lockd.seen import Seen, read_seen
from holdfast.reference.lockd.wire import Refusal, present

if TYPE_CHECKING:
    from holdfast.reference.lockd.node import Node


class Following(Leadership):
    def __init__(self, node: "Node") -> None:
        super().__init__(node)
        self.highest_heard = 0

    @property
    def enabled(self) -> bool:
        return self.peers is not None

    def require(self) -> None:
        if not self.enabled:
            raise self.unavailable()

    def unavailable(self) -> Refusal:
        return Refusal(503, "tc_unavailable", "No leader can be determined.")

    def current_leader(self) -> Seen | None:
        """Returns the leader while its lease is valid; an own lease counts only while this node holds it."""
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
        """Returns the slot for `GET /v1/tc/leader`; a vote shows its term, but no leader."""
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

    def is_me(self, seen: Seen) -> bool:
        return seen.leader_id == self.identity and seen.leader_endpoint == self.me

    def is_leader_record(self, seen: Seen) -> bool:
        return bool(seen.leader_endpoint) and seen.term > 0 and seen.expires_at > self.clock.wall_ms()

    def observed(self, answers: Iterable[Seen]) -> Seen | None:
        valid = [seen for seen in answers if self.is_leader_record(seen)]
        return max(valid, key=lambda seen: (seen.term, seen.expires_at), default=None)

    def leader_is_fresh(self) -> bool:
        return self.slot.live() and self.slot.held.observed and self.slot.remaining() > self.ttl() / 2

    async def look(self, peers: Sequence[str]) -> list[Seen]:
        """Asks the peers for a leader, follows the one they know, and returns what they said."""
        answers = await asyncio.gather(*(self.ask(peer) for peer in peers if peer != self.me))
        # Kept, because a restarted node may be alone in its list when it becomes a candidate, without a peer to ask.
        self.highest_heard = max([self.highest_heard, *(seen.term for seen in answers)])
        found = self.observed(answers)
        if found is not None and self.slot.follow(found.leader_id, found.leader_endpoint, found.term, found.expires_at):
            self.followed(found)
        return list(answers)

    def followed(self, found: Seen) -> None:
        if self.may_adopt(found):
            self.adopt(found.term, self.slot.held.expires)

    def may_adopt(self, seen: Seen) -> bool:
        return self.is_me(seen)

    async def ask(self, peer: str) -> Seen:
        """Returns what the peer reports; a peer that does not answer reports nothing."""
        try:
            reply = await self.node.peers.call("election", "GET", f"{peer}/v1/tc/leader", limit=self.round_limit())
        except PeerFailed:
            return Seen()
        return read_seen(reply.body) if reply.ok else Seen()
