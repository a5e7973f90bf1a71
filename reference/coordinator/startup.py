"""How a node joins: it beats before it competes, and takes up what an earlier process of its id has left."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from holdfast.reference.coordinator.store import AWAY

if TYPE_CHECKING:
    from holdfast.reference.coordinator.node import Node

RETRY_SECONDS = 0.1


class Startup:
    def __init__(self, node: "Node") -> None:
        self.node = node

    def steps(self) -> Sequence[Callable[[], Awaitable[None]]]:
        return (self.say_settings, self.node.registry.load_at_start, self.node.heartbeat.beat)

    async def say_settings(self) -> None:
        """Writes the settings that are in force where an operator of the cluster finds them."""
        await self.node.store.keep(f"config:{self.node.id}", self.node.settings.spoken())

    async def join(self) -> None:
        """Joins the cluster, step by step, and stays in it. A step that fails while Redis is away is tried again."""
        listening = self.node.spawn(self.node.topics.listen())
        for step in self.steps():
            await self.persistently(step)
        for work in self.loops():
            self.node.spawn(work)
        self.node.ready = True
        self.node.events.emit("node.ready", settings=dict(self.node.settings.spoken()))
        await listening

    def loops(self) -> list[Coroutine[Any, Any, None]]:
        node = self.node
        return [
            node.heartbeat.run(),
            node.health.watch(),
            node.job_events.follow(),
            node.assigned.consume(node.assignments.enabled),
            node.handoffs.consume(node.subscriber.enabled),
            self.sweeps(),
            node.challenge.run(),
            *(duty.run() for duty in node.duties),
            node.rebalancer.run(),
        ]

    async def sweeps(self) -> None:
        """Takes over what is stuck with consumers that died, at every OrphanCheckInterval."""
        while True:
            for queue, enabled in (
                (self.node.assigned, self.node.assignments.enabled),
                (self.node.handoffs, self.node.subscriber.enabled),
            ):
                with suppress(*AWAY):
                    if queue.reading and enabled():
                        await queue.claim_stuck()
            await self.node.clock.sleep(self.node.settings.orphan_check_interval)

    async def persistently(self, step: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await step()
            except AWAY:
                await asyncio.sleep(RETRY_SECONDS)
            else:
                return
