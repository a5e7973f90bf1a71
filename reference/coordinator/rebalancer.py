"""Rebalancing (section 3, layer L3), which is optional: an overloaded node hands jobs off down to the mean.

It looks at the loads twice per heartbeat. A load figure that is older than the last handoff counts as unknown, for it
does not show what was handed off; and while its own jobs are on offer the node takes no handoffs.
"""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from math import ceil, inf
from typing import TYPE_CHECKING

from holdfast.reference.coordinator.messages import REBALANCE
from holdfast.reference.coordinator.ownership import Job
from holdfast.reference.coordinator.store import AWAY

if TYPE_CHECKING:
    from holdfast.reference.coordinator.node import Node

LOOK_SECONDS = 0.02


class Rebalancer:
    def __init__(self, node: "Node") -> None:
        self.node = node
        self.busy = False
        self.rested = -inf
        self.work: asyncio.Task[None] | None = None

    async def run(self) -> None:
        while self.node.settings.rebalance and not self.node.draining:
            with suppress(*AWAY):
                await self.look()
            await self.node.clock.sleep(self.interval())

    def interval(self) -> float:
        return self.node.settings.heartbeat_interval / 2

    def peers(self) -> dict[str, int]:
        """Returns the jobs of each live node that is not draining, if its figure is newer than the last handoff."""
        live = self.node.health.live_peers().items()
        return {
            node_id: peer.job_count for node_id, peer in live if peer.status == "Active" and self.is_fresh(peer.heard)
        }

    def is_fresh(self, heard: float) -> bool:
        return heard > self.rested

    def triggered(self, own: int, least: int) -> bool:
        return own >= self.node.settings.rebalance_ratio * least

    def amount(self, own: int, loads: Iterable[int]) -> int:
        """Returns how many jobs are above the mean of all nodes."""
        known = [own, *loads]
        return own - ceil(sum(known) / len(known))

    def own_load(self) -> int:
        """Returns this node's jobs by its last heartbeat, as the others know them, less those that have gone since."""
        return min(self.node.heartbeat.told, self.node.registry.count())

    async def look(self) -> None:
        loads, own = self.peers().values(), self.own_load()
        if loads and self.triggered(own, min(loads)) and (amount := self.amount(own, loads)) > 0:
            self.work = self.node.spawn(self.hand_off(list(self.node.registry.jobs.values())[-amount:]))
            with suppress(asyncio.CancelledError):
                await self.work

    async def hand_off(self, jobs: list[Job]) -> None:
        await self.pause_intake()
        try:
            await asyncio.gather(*(self.node.publisher.hand_off(job, REBALANCE) for job in jobs))
        finally:
            self.rested, self.busy = self.node.clock.now(), False

    async def pause_intake(self) -> None:
        """Takes no handoffs, and waits for the read that is under way."""
        self.busy = True
        until = self.node.clock.now() + 2 * self.node.settings.block
        while not self.node.handoffs.at_rest and self.node.clock.now() < until:
            await self.node.clock.sleep(LOOK_SECONDS)

    def stop(self) -> None:
        """Takes back what is on offer: a draining node offers all its jobs, and for another reason."""
        if self.work is not None and not self.work.done():
            self.work.cancel()
        self.node.publisher.offers.clear()
