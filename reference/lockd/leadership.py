"""What a leader does: renew, retry, give way, step down (spec: Renewal, Step-down and quorum loss).

Whether this node leads is never a flag. `leading` says in which term and until when, and every question compares that
with the monotonic clock and with the own slot. A node that was frozen beyond its lease is therefore no leader when it
wakes, before any of its timers has run; and a release of its slot by a call that carried its id ends its leadership
at once.

The local lease begins when a successful round is sent, the slot of each voter when the call arrives there. So the
leader stops before the first voter may vote for another, as long as the clocks run at about the same speed.

Renewal rounds begin every third of the lease. A round without a quorum ends nothing by itself: it is repeated after a
sixth of the lease while the local lease lasts, but neither that lease nor the own slot is extended. If no round
succeeds the lease runs out, and the next turn of the loop steps down: it releases the lease everywhere, so that the
others need not wait for theirs to lapse.

Only startup, the loop, a leave and a graceful stop change `leading`. A leave can come during any await of a round, so
a round compares `leading` again before it extends the lease.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.reference.lockd.rounds import Leading, Rounds, Tally

if TYPE_CHECKING:
    from holdfast.reference.lockd.node import Node


class Leadership(Rounds):
    def __init__(self, node: "Node") -> None:
        super().__init__(node)
        self._renew_due = 0.0
        self._outranked_rounds = 0

    def renew_every(self) -> float:
        return self.ttl() / 3

    def retry_after(self) -> float:
        return self.ttl() / 6

    def holds(self) -> bool:
        return self.leading is not None and self.still_leads(self.leading, self.clock.monotonic())

    def still_leads(self, leading: Leading, now: float) -> bool:
        return leading.expires > now and self.own_vote(leading.term)

    def win(self, term: int, started: float, tally: Tally) -> float:
        self._outranked_rounds = 0
        self.outranked = False
        self.leading = Leading(term, started + self.ttl())
        self.slot.renew(self.identity, term, self.leading.expires - self.clock.monotonic())
        self._renew_due = started + self.renew_every()
        self.node.events.emit(
            "tc.leader.elected", leader_id=self.identity, leader_endpoint=self.me, term=term, grants=tally.grants
        )
        return 0.0

    def adopt(self, term: int, expires: float) -> None:
        """Takes up an own lease that is still valid at the peers, after a restart; it is renewed at once."""
        self.node.events.emit("tc.leader.adopted", leader_id=self.identity, term=term)
        self.leading = Leading(term, expires)
        self._renew_due = self.clock.monotonic()

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

    async def renew(self, leading: Leading, peers: tuple[str, ...], started: float) -> None:
        if self.must_give_way():
            await self.step_down(peers)
            return
        self._renew_due = started + self.renew_every()
        tally = await self.count(self.renewals(leading.term, peers), self.quorum(len(peers)))
        if self.leading != leading:
            return
        if self.won(tally, peers) and self.own_vote(leading.term):
            self.renewed(leading, started)
        else:
            self.on_renew_failed(leading, tally, peers)

    def must_give_way(self) -> bool:
        """Returns whether some member has refused the term as stale for a whole lease.

        A member that came back from a partition may hold a higher term for good. It never follows this leader, so only
        an election above its term brings the two together. A member that refuses because it is a candidate itself
        loses, and forgets that term, within less than a lease.
        """
        self._outranked_rounds = self._outranked_rounds + 1 if self.outranked else 0
        self.outranked = False
        return self._outranked_rounds * self.renew_every() >= self.ttl()

    def renewed(self, leading: Leading, started: float) -> None:
        self.leading = Leading(leading.term, started + self.ttl())
        self.slot.renew(self.identity, leading.term, self.leading.expires - self.clock.monotonic())

    def on_renew_failed(self, leading: Leading, tally: Tally, peers: Sequence[str]) -> None:
        self._renew_due = self.clock.monotonic() + self.retry_after()
        self.node.events.emit(
            "tc.leader.renew.failed", term=leading.term, grants=tally.grants, quorum=self.quorum(len(peers))
        )

    async def step_down(self, peers: Sequence[str]) -> None:
        """Stops leading first and releases after that: no answer of a peer can delay or prevent the step-down."""
        leading, self.leading = self.leading, None
        if leading is None:
            return
        self.node.events.emit("tc.leader.stepped_down", leader_id=self.identity, term=leading.term)
        await self.release_everywhere(leading.term, peers)
