"""Promotion of the waiting line (spec 10): on every release, and by a tick for slots that others freed."""

import asyncio
from typing import TYPE_CHECKING

from holdfast.reference.admission.attempts import fresh_id
from holdfast.reference.admission.redislink import RedisAway
from holdfast.reference.admission.verdicts import Promoted

if TYPE_CHECKING:
    from holdfast.reference.admission.node import Node


class Promoter:
    def __init__(self, node: "Node") -> None:
        self.node = node

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self.node.settings.promoter_tick)
            try:
                for instance_id in await self.node.store.promotable():
                    await self.fill(instance_id)
            except RedisAway:
                continue  # promoted by the first tick after the outage

    def wake(self, instance_id: str) -> None:
        """A slot of this instance may have become free."""
        self.node.spawn(self._fill_soon(instance_id))

    async def _fill_soon(self, instance_id: str) -> None:
        try:
            await self.fill(instance_id)
        except RedisAway:
            return  # the tick goes on

    async def fill(self, instance_id: str) -> None:
        """Promotes as many as there are slots; each run of the script takes one."""
        while (promoted := await self.promote_one(instance_id))["promoted"]:
            self.announce(instance_id, promoted)

    async def promote_one(self, instance_id: str) -> Promoted:
        facts = {"instanceId": instance_id, "newSessionId": fresh_id(), "newToken": fresh_id()}
        return await self.node.store.promote(facts)

    def announce(self, instance_id: str, promoted: Promoted) -> None:
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
