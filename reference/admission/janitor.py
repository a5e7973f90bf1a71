"""Stale session cleanup (spec 8): every interval, expired graces and sessions without heartbeats are ended.

Every node has a janitor, and each cleans the sessions of all nodes; the script `reap` sees to it that one session is
ended, logged and counted once. A janitor must not judge heartbeats that could not be written: after an interruption
it is held for one interval, and a run that reaches Redis late ends nothing.
"""

import asyncio
from collections import Counter
from time import monotonic
from typing import TYPE_CHECKING

from holdfast.reference.admission.verdicts import Ended
from holdfast.reference.shared.redislink import RedisAway

if TYPE_CHECKING:
    from holdfast.reference.admission.node import Node


class Janitor:
    def __init__(self, node: "Node") -> None:
        self.node = node
        self._next = monotonic() + self.interval()

    def interval(self) -> float:
        return self.node.settings.janitor_interval

    def hold(self) -> None:
        """Puts the next pass off by one interval, so that all nodes can write the heartbeats of their live sockets."""
        self._next = monotonic() + self.interval()

    async def run(self) -> None:
        while True:
            if monotonic() < self._next:
                await asyncio.sleep(self._next - monotonic())
                continue  # it may have been held meanwhile
            self._next += self.interval()
            try:
                await self.clean()
            except RedisAway:
                continue  # the next connection holds the janitor

    async def clean(self) -> Counter[str]:
        """Runs one pass and fills the freed slots; returns how many sessions ended, by reason."""
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
        """Logs the end of a session and closes its socket, if it still has one."""
        self.node.events.emit(
            "connection.disconnected",
            instanceId=session["instanceId"],
            characterId=session["characterId"],
            userId=session["userId"],
            sessionId=session["sessionId"],
            reason=session["reason"],
        )
        self.node.kicks.send(session.get("socket"), 4003)
