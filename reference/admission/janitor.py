"""Stale session cleanup (spec 8): every interval, expired graces and sessions without heartbeats are ended."""

import asyncio
from collections import Counter
from time import monotonic
from typing import TYPE_CHECKING

from holdfast.reference.admission.redislink import RedisAway
from holdfast.reference.admission.verdicts import Ended

if TYPE_CHECKING:
    from holdfast.reference.admission.node import Node


class Janitor:
    def __init__(self, node: "Node") -> None:
        self.node = node
        self._next = monotonic() + self.interval()

    def interval(self) -> float:
        return self.node.settings.janitor_interval

    def hold(self) -> None:
        """After an interruption all nodes get one interval to write the heartbeats of their live sockets again."""
        self._next = monotonic() + self.interval()

    async def run(self) -> None:
        while True:
            if monotonic() < self._next:
                await asyncio.sleep(self._next - monotonic())
                continue  # held meanwhile, perhaps
            self._next += self.interval()
            try:
                await self.clean()
            except RedisAway:
                continue  # the next connection holds the janitor anyway

    async def clean(self) -> Counter[str]:
        """One pass. The counts are by reason of the end."""
        now = monotonic()
        ended = await self.node.store.reap(self.node.store.clock.redis_ms(now + self.node.settings.heartbeat_interval))
        if ended is None:
            self.hold()
            return Counter()
        for session in ended:
            self.announce(session)
        for instance_id in {session["instanceId"] for session in ended}:
            await self.node.promoter.fill(instance_id)
        return Counter(session["reason"] for session in ended)

    def announce(self, session: Ended) -> None:
        self.node.events.emit(
            "connection.disconnected",
            instanceId=session["instanceId"],
            characterId=session["characterId"],
            userId=session["userId"],
            sessionId=session["sessionId"],
            reason=session["reason"],
        )
        self.node.kicks.send(session.get("socket"), 4003)
