"""The membership loop (spec: Membership loop): every third of the lease, announce here and to every member."""

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
        # An announce under way must not overtake the leave that follows it, so each peer is told one thing at a time.
        self.telling: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    def interval(self) -> float:
        return self.node.members.ttl() / 3

    def announce_targets(self, members: Sequence[str] | None, seeds: Sequence[str]) -> list[str]:
        """The other members; the seeds only while no other member is known or the list can't be read."""
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
            self.node.spawn(self.tick())  # a slow peer must not shift the next tick
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
        """Announce ourselves in our own store, then what it lists; None when it can't be read."""
        try:
            if not self.silent():
                await self.announce_here()
            return (await self.node.members.active()).endpoints
        except StoreUnavailable as error:
            self.node.events.emit("tc.cluster.store.failed", error=str(error))
            return None

    async def announce_here(self) -> None:
        """The pause is looked at again inside the change: a leave may have come while the store was busy."""
        async with self.node.leave.changing:
            if not self.silent():
                await self.node.members.announce(self.node.leader_id, self.me)

    async def fan_out(self, members: Sequence[str] | None, targets: Sequence[str]) -> None:
        """Members that the replies name and that are unknown here are told too, or a star would never close."""
        replies = await asyncio.gather(*(self.announce_to(target) for target in targets))
        known = {*(members or ()), *targets, self.me}
        news = self.further_targets(replies) - known
        await asyncio.gather(*(self.announce_to(target) for target in sorted(news)))

    def further_targets(self, replies: Sequence[Sequence[str] | None]) -> set[str]:
        return {endpoint for reply in replies for endpoint in reply or ()}

    async def announce_to(self, target: str) -> Sequence[str] | None:
        """The members that the target lists; None when it did not accept."""
        async with self.telling[target]:
            if self.silent():
                return None
            try:
                url = f"{target}/v1/tc/cluster/announce"
                reply = await self.node.peers.call("membership", "POST", url, {"self_endpoint": self.me})
            except PeerFailed as failed:
                self.not_told(target, str(failed))
                return None
        if reply.ok:
            return self.listed(reply.body)
        self.not_told(target, f"status {reply.status}")
        return None

    def not_told(self, target: str, why: str) -> None:
        self.node.events.emit("tc.cluster.announce.peer_failed", endpoint=target, error=why)

    def listed(self, body: Any) -> list[str]:
        endpoints = body.get("endpoints")
        texts = [each for each in endpoints if isinstance(each, str)] if isinstance(endpoints, list) else []
        return [found for each in texts if (found := self.node.members.normalize_endpoint(each))]
