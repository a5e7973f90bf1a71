"""RM self-registration (spec: Periodic RM registration): at every coordinator, as long as the node runs.

Each coordinator has its own schedule: after a success it is due again in a period, after a failure at the next poll.
So one that is down is retried soon, and does not change when the others are called. A coordinator replicates the
entry to its members, so registering at all of them repeats work on purpose: it repairs members that differ
(`registry.py`).
"""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.reference.lockd.store import StoreUnavailable
from holdfast.reference.lockd.wire import Refusal

if TYPE_CHECKING:
    from holdfast.reference.lockd.node import Node

POLLS_PER_PERIOD = 30
SHORTEST_POLL = 0.2


class RmLoop:
    def __init__(self, node: "Node") -> None:
        self.node = node
        self._due: dict[str, float] = {}
        self._under_way: set[str] = set()

    def period(self) -> float:
        return self.node.settings.rm_register_period

    def poll(self) -> float:
        return max(SHORTEST_POLL, self.period() / POLLS_PER_PERIOD)

    def register_targets(self, members: Sequence[str] | None, seeds: Sequence[str]) -> Sequence[str]:
        """Returns the members, or the seeds while there are none or the list cannot be read."""
        return members or seeds

    async def run(self) -> None:
        while True:
            for target in self.register_targets(await self.members(), self.node.settings.join):
                if target not in self._under_way and self._due.get(target, 0.0) <= self.node.clock.monotonic():
                    self._under_way.add(target)
                    self.node.spawn(self.turn(target))
            await asyncio.sleep(self.poll())

    async def members(self) -> Sequence[str] | None:
        try:
            return (await self.node.members.active()).endpoints
        except StoreUnavailable:
            return None

    async def turn(self, target: str) -> None:
        started = self.node.clock.monotonic()
        try:
            why = await self.register_at(target)
        finally:
            self._under_way.discard(target)
        self._due[target] = self.next_due(started, failed=bool(why))
        if why:
            self.node.events.emit("tc.rm.register.failed", endpoint=target, error=why)

    def next_due(self, started: float, *, failed: bool) -> float:
        return started + (self.poll() if failed else self.period())

    async def register_at(self, target: str) -> str:
        backend, me = self.node.island.hash, self.node.settings.self_endpoint
        if target == me:
            return await self.register_here(backend, me)
        body = {"backend_hash": backend, "endpoint": me}
        return await self.node.peers.accepts("registry", f"{target}/v1/tc/rm/register", body)

    async def register_here(self, backend: str, me: str) -> str:
        try:
            await self.node.registry.requested("register", backend, me, {})
        except Refusal as refusal:
            return refusal.code
        except StoreUnavailable as error:
            return str(error)
        return ""
