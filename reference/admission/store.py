"""The scripts as typed calls (spec 1, 10, 11).

Everything that nodes share is read and changed through these calls, one script run each. Every answer carries the
Redis time of its run, which keeps the estimate of the Redis clock current; a run that took longer than a heartbeat
interval holds the janitor, because heartbeats of live sockets may have been stuck behind it.
"""

from typing import TYPE_CHECKING, cast

from holdfast.reference.admission import verdicts
from holdfast.reference.admission.verdicts import Record, Verdict
from holdfast.reference.shared.redislink import Call
from holdfast.reference.shared.scriptstore import ScriptStore

if TYPE_CHECKING:
    from holdfast.reference.admission.node import Node


class Store(ScriptStore):
    def __init__(self, node: "Node") -> None:
        super().__init__(node)
        self.node = node

    def took(self, seconds: float) -> None:
        if seconds > self.node.settings.heartbeat_interval:
            self.node.recovery.stalled()

    async def decide(self, facts: Record) -> Verdict:
        return cast("Verdict", await self.run("decide", facts))

    async def attach(self, facts: Record) -> verdicts.Attached:
        return cast("verdicts.Attached", await self.run("attach", facts))

    async def beat(self, session_id: str, socket: str) -> verdicts.Beat:
        return cast("verdicts.Beat", await self.run("beat", {"sessionId": session_id, "socket": socket}))

    async def leave(self, facts: Record) -> verdicts.Left:
        return cast("verdicts.Left", await self.run("leave", facts))

    async def status(self, user_id: str, character_id: str, instance_id: str) -> verdicts.Status:
        facts = {"userId": user_id, "characterId": character_id, "instanceId": instance_id}
        return cast("verdicts.Status", await self.run("status", facts))

    async def promotable(self) -> list[str]:
        return list((await self.run("promotable", {}))["instances"])

    async def promote(self, facts: Record) -> verdicts.Promoted:
        return cast("verdicts.Promoted", await self.run("promote", facts))

    async def reap(self, deadline_ms: float) -> list[verdicts.Ended] | None:
        """Returns the sessions that this pass has ended, or None when the run came too late to judge heartbeats."""
        answer = await self.run("reap", {"deadlineMs": deadline_ms})
        return None if answer.get("late") else list(answer["ended"])

    async def restore(self, session: Record, call: Call) -> verdicts.Restored:
        return cast("verdicts.Restored", await self.run("restore", {"session": session}, call))

    async def gauges(self) -> list[verdicts.InstanceGauges]:
        return list((await self.run("gauges", {}))["instances"])
