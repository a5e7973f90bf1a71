"""The membership loop (spec: Membership loop): every third of the membership lease, announce here and to the members.

A tick goes in this order:

1. Write the own lease to the own store, unless the node has left or is leaving. The list of step 2 then contains this
   node, which the election needs (`Rounds.peer_set`).
2. Read the list and give it to the election.
3. Announce to every other member; to the seeds only while no other member is listed or the list cannot be read.
4. Announce to members that the replies name and this list lacks. Without this step two nodes that joined through the
   same seed would never learn of each other.

One lost announce costs nothing: a lease lasts three intervals. A peer that fails is logged and skipped; its lease
stays listed here until it expires, for only its owner may remove it.

Ticks start on time, whatever the one before is waiting for, so that one slow peer does not make this node's leases
lapse at the others. Two ticks may therefore overlap. Announces to one peer wait for each other (`peer_locks`), and each
looks again whether the node has left meanwhile: an announce after a leave would bring back a member that is gone.
`Leave` takes the same locks.
"""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from holdfast.reference.lockd.peers import PeerFailed
from holdfast.reference.lockd.store import StoreUnavailable

if TYPE_CHECKING:
    from holdfast.reference.lockd.node import Node


class Loop:
    def __init__(self, node: "Node") -> None:
        self.node = node
        self.wake = asyncio.Event()
        self.peer_locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    def interval(self) -> float:
        return self.node.members.ttl() / 3

    def announce_targets(self, members: Sequence[str] | None, seeds: Sequence[str]) -> list[str]:
        others = [each for each in members or () if each != self.me]
        return others or [each for each in seeds if each != self.me]

    def silent(self) -> bool:
        return self.node.leave.paused or self.node.leave.leaving

    @property
    def me(self) -> str:
        return self.node.settings.self_endpoint

    async def run(self) -> None:
        clock, due = self.node.clock, self.node.clock.monotonic()
        while True:
            self.wake.clear()
            self.node.spawn(self.tick())
            due = max(due + self.interval(), clock.monotonic())
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(due - clock.monotonic()):
                    await self.wake.wait()
                    due = clock.monotonic()

    async def tick(self) -> None:
        members = await self.present()
        await self.node.election.refresh()
        self.node.election.wake.set()
        if not self.silent():
            await self.fan_out(members, self.announce_targets(members, self.node.settings.join))

    async def present(self) -> Sequence[str] | None:
        """Announces this node in its own store and returns what that lists, None when it cannot be read."""
        try:
            if not self.silent():
                await self.announce_here()
            return (await self.node.members.active()).endpoints
        except StoreUnavailable as error:
            self.node.events.emit("tc.cluster.store.failed", error=str(error))
            return None

    async def announce_here(self) -> None:
        """Writes the own lease, unless a leave came while this waited for the lock."""
        async with self.node.leave.changing:
            if not self.silent():
                await self.node.members.announce(self.node.leader_id, self.me)

    async def fan_out(self, members: Sequence[str] | None, targets: Sequence[str]) -> None:
        replies = await asyncio.gather(*(self.announce_to(target) for target in targets))
        known = {*(members or ()), *targets, self.me}
        news = self.further_targets(replies) - known
        await asyncio.gather(*(self.announce_to(target) for target in sorted(news)))

    def further_targets(self, replies: Sequence[Sequence[str] | None]) -> set[str]:
        return {endpoint for reply in replies for endpoint in reply or ()}

    async def announce_to(self, target: str) -> Sequence[str] | None:
        """Announces this node to the target and returns the members it lists, None when it did not accept."""
        async with self.peer_locks[target]:
            if self.silent():
                return None
            try:
                url = f"{target}/v1/tc/cluster/announce"
                reply = await self.node.peers.call("membership", "POST", url, {"self_endpoint": self.me})
            except PeerFailed as failed:
                self.announce_failed(target, str(failed))
                return None
        if reply.ok:
            return self.listed(reply.body)
        self.announce_failed(target, f"status {reply.status}")
        return None

    def announce_failed(self, target: str, why: str) -> None:
        self.node.events.emit("tc.cluster.announce.peer_failed", endpoint=target, error=why)

    def listed(self, body: Any) -> list[str]:
        endpoints = body.get("endpoints")
        texts = [each for each in endpoints if isinstance(each, str)] if isinstance(endpoints, list) else []
        return [found for each in texts if (found := self.node.members.normalize_endpoint(each))]
