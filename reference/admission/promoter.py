"""Promotion of the waiting line (spec 10): on every release, and by a tick for slots that others freed.

Invariant: a free slot goes to the head of the line, and each slot to one character. The script `promote` alone
provides it: one run looks whether a slot is free, takes the earliest entry that may enter and makes its session. Any
number of promoters on any number of nodes may therefore run at once, and none of them owns an instance.

When. A node that frees a slot wakes its own promoter (`wake`). The tick finds the rest: slots that a node freed
before it crashed or during an outage. Waking twice or for nothing costs one run and changes nothing.

Order. The session exists before anybody knows of it. The run that made it is the only one that answers `promoted`, so
its node logs and observes it, once. A node that dies between run and log loses the log line, never the character: the
poll shows the session to its owner until a socket attaches, and without one the janitor ends it.
"""

import asyncio
from typing import TYPE_CHECKING

from holdfast.reference.admission.attempts import fresh_id
from holdfast.reference.admission.verdicts import Promoted
from holdfast.reference.shared.redislink import RedisAway

if TYPE_CHECKING:
    from holdfast.reference.admission.node import Node


class Promoter:
    def __init__(self, node: "Node") -> None:
        self.node = node

    async def run(self) -> None:
        """Looks at all instances every tick, for ever."""
        while True:
            await asyncio.sleep(self.node.settings.promoter_tick)
            try:
                for instance_id in await self.node.store.promotable():
                    await self.fill(instance_id)
            except RedisAway:
                continue  # the first tick after the outage promotes

    def wake(self, instance_id: str) -> None:
        """Promotes soon, because a slot of this instance may have become free."""
        self.node.spawn(self._fill_soon(instance_id))

    async def _fill_soon(self, instance_id: str) -> None:
        try:
            await self.fill(instance_id)
        except RedisAway:
            return  # a later tick promotes

    async def fill(self, instance_id: str) -> None:
        """Promotes until no slot is free or nobody waits; each run of the script takes one."""
        while (promoted := await self.promote_one(instance_id))["promoted"]:
            self.announce(instance_id, promoted)

    async def promote_one(self, instance_id: str) -> Promoted:
        facts = {"instanceId": instance_id, "newSessionId": fresh_id(), "newToken": fresh_id()}
        return await self.node.store.promote(facts)

    def announce(self, instance_id: str, promoted: Promoted) -> None:
        """Logs the admission under the id of the attempt that was queued, and observes its wait."""
        self.node.events.emit(
            "connection.admitted",
            instanceId=instance_id,
            characterId=promoted["characterId"],
            userId=promoted["userId"],
            attemptId=promoted["attemptId"],
            sessionId=promoted["sessionId"],
            fromQueue=True,
            waitMs=promoted["waitMs"],
        )
        self.node.metrics.observe_wait(promoted["waitMs"] / 1000)
