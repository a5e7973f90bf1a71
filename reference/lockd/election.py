"""Leader election (spec: TC Leader Election): the loop of one node, and its candidacy.

The election of a node is built in four layers, each on the one before: `rounds.py` (peer set, quorum, lease calls),
`leadership.py` (renewal and step-down), `following.py` (the observed leader), and this module. `Election` is the
class that a node has and that a mutant overrides, in whichever layer the seam lies.

The loop takes one decision a turn: lead, wait while the election is off, wait while a leader is followed, or seek
one. It wakes early at each membership tick, when the membership changes, and when a lease is released here. Only this
loop starts an election.

A candidacy runs in this order:

1. Look around. A peer that knows a valid leader ends the candidacy here.
2. Stagger: nodes wait by their place in the sorted peer set, so that the survivors of one leader do not all vote for
   themselves at the same moment. A lease call that arrives meanwhile ends the candidacy too.
3. Ask for votes, in a term above every term that this node holds or has heard of.
4. Confirm: renew, and lead only if a quorum accepts the renewal too. A vote is not enough to lead, because the
   release of a vote gives its term back (`slot.py`), for another candidate to lead in. A renewal turns the votes into
   observed leases, whose term no release gives back. So a term that was led in is not led in by another.
5. On failure, release the term everywhere and wait for a random time that grows with each loss.

After every await the situation may have changed: a leave may have switched the election off, or a peer may have got
the own slot. So peers, leadership and own slot are read again before each step that relies on them.
"""

import asyncio
import contextlib
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.reference.lockd.following import Following

if TYPE_CHECKING:
    from holdfast.reference.lockd.node import Node

STAGGER = 0.5
BACKOFF, LONGEST_BACKOFF = 0.5, 3.0
SPEC_TTL = 15.0
SMALLEST_SHARE = 0.4


class Election(Following):
    def __init__(self, node: "Node") -> None:
        super().__init__(node)
        self.wake = asyncio.Event()
        self.running_for = 0
        self._lost = 0

    def next_term(self, own: int, reported: Sequence[int]) -> int:
        return max([own, *reported]) + 1

    def share(self) -> float:
        """Returns the factor by which pauses shrink with the lease, never so small that nodes start at one moment."""
        return max(SMALLEST_SHARE, self.ttl() / SPEC_TTL)

    def stagger(self, peers: Sequence[str]) -> float:
        place = sorted(peers).index(self.me) if self.me in peers else 0
        return STAGGER * self.share() * place / len(peers)

    def backoff(self, lost: int) -> float:
        base = min(BACKOFF * (1 << min(lost, 8)), LONGEST_BACKOFF) * self.share()
        return base + random.uniform(0, base)

    async def run(self) -> None:
        while True:
            self.wake.clear()
            pause = await self.step()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, pause)):
                    await self.wake.wait()

    async def step(self) -> float:
        """Takes one decision of the loop and returns how long to wait for the next."""
        await self.refresh()
        if self.leading is not None:
            return await self.lead()
        if self.peers is None:
            return self.renew_every()
        if self.leader_is_fresh():
            return min(self.slot.remaining() - self.ttl() / 2, self.renew_every())
        return await self.seek(self.peers)

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
        self.running_for = term
        tally = await self.votes(term, peers)
        if self.won(tally, peers) and self.own_vote(term):
            started = self.clock.monotonic()
            if await self.confirmed(term, peers):
                self.running_for = self._lost = 0
                return self.win(term, started, tally)
        await self.release_everywhere(term, peers)
        self.running_for = 0
        self._lost += 1
        self.node.events.emit(
            "tc.leader.election.failed", term=term, grants=tally.grants, quorum=self.quorum(len(peers))
        )
        return self.backoff(self._lost - 1)

    async def confirmed(self, term: int, peers: Sequence[str]) -> bool:
        tally = await self.count(self.renewals(term, peers), self.quorum(len(peers)))
        return self.won(tally, peers) and self.own_vote(term)

    async def resign(self) -> None:
        """Releases the leases of a leader, or the votes of a candidate, that leaves or stops: others need not wait."""
        if self.leading is not None:
            await self.step_down(self.voters)
        elif self.running_for:
            await self.release_everywhere(self.running_for, self.voters)
