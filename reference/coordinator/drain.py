"""CoordinatorDrainService: what a node does between SIGTERM and its exit (section 4, scenario A, and cases C and D).

The hard limit is kept by a thread of its own, because a node that waits for Redis, or for anything else, has to be gone
by then as well.
"""

import asyncio
import os
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from holdfast.reference.coordinator.messages import SHUTDOWN
from holdfast.reference.coordinator.ownership import Job
from holdfast.reference.coordinator.store import AWAY

if TYPE_CHECKING:
    from holdfast.reference.coordinator.node import Node

FORCED = 3
"""Exit status of a node that leaves jobs behind."""
LOOK_SECONDS = 0.1


class Exit:
    """The two ways out of the process that are not the end of the program."""

    def within(self, seconds: float) -> None:
        """Ends the process after so many seconds, whatever it is doing then."""
        timer = threading.Timer(seconds, self.force)
        timer.daemon = True
        timer.start()

    def force(self) -> None:
        os._exit(FORCED)


class CoordinatorDrainService:
    def __init__(self, node: "Node") -> None:
        self.node = node
        self.began = 0.0

    def deadline(self) -> float:
        return self.node.settings.handoff_hard_timeout

    async def on_sigterm(self) -> None:
        """Drains, and returns when the node may exit."""
        self.began = self.node.clock.now()
        self.node.draining = True
        self.node.exit.within(self.deadline())
        self.node.events.emit("node.draining", jobs=self.node.registry.count())
        await self.node.lease.release()
        self.node.spawn(self.say_so())
        await self.stop_intake()
        await self.hand_off_all()
        await self.after_settled()

    async def say_so(self) -> None:
        with suppress(*AWAY):
            await self.node.heartbeat.beat()

    async def stop_intake(self) -> None:
        """Leaves both competing queues; what was received already is dealt with first."""
        await asyncio.gather(self.node.assignments.stop(), self.node.subscriber.stop())
        self.node.rebalancer.stop()

    async def jobs_to_hand_off(self) -> list[Job]:
        return list(self.node.registry.jobs.values())

    async def hand_off_all(self) -> None:
        """Offers all jobs at once; each goes its own way through the decision tree."""
        while jobs := [job for job in await self.jobs_to_hand_off() if job.id not in self.node.publisher.offers]:
            await asyncio.gather(*(self.node.publisher.hand_off(job, SHUTDOWN) for job in jobs))

    async def after_settled(self) -> None:
        """Waits, if jobs were given up: for a moment if others live, who may still acknowledge, else to the end."""
        left = self.began + self.deadline() - self.node.clock.now()
        wait = min(self.node.settings.orphan_wait, left) if self.node.health.live_peers() else left
        await self.nothing_left(wait)

    async def nothing_left(self, seconds: float) -> None:
        """Returns when this node owns no job any more, or after so many seconds."""
        until = self.node.clock.now() + seconds
        while self.node.registry.jobs and (left := until - self.node.clock.now()) > 0:
            await self.node.clock.sleep(min(LOOK_SECONDS, left))
