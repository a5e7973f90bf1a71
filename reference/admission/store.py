"""The scripts as typed calls (spec 1, 10, 11). Everything that nodes share is behind these."""

import asyncio
import json
from time import monotonic
from typing import TYPE_CHECKING, Any, cast

import hiredis

from holdfast.reference.admission import verdicts
from holdfast.reference.admission.redislink import Call, RedisAway, RedisClock
from holdfast.reference.admission.verdicts import Record, Verdict

if TYPE_CHECKING:
    from holdfast.reference.admission.node import Node

_dumps = json.JSONEncoder(separators=(",", ":")).encode


class Store:
    def __init__(self, node: "Node") -> None:
        self.node = node
        self.scripts = node.scripts.all
        self.clock = RedisClock()

    async def prepare(self, call: Call) -> None:
        """On each new connection: the scripts are loaded and the clocks compared."""
        await asyncio.gather(*(call("SCRIPT", "LOAD", script.text) for script in self.scripts.values()))
        sent = monotonic()
        seconds, microseconds = await call("TIME")
        self.clock.observe(sent, monotonic(), int(seconds) * 1000 + int(microseconds) / 1000)

    async def run(self, name: str, facts: Record, call: Call | None = None) -> Any:
        """One run of one script: facts in, verdict out."""
        call = call or self.node.link.call
        sent = monotonic()
        answer = json.loads(await self._evaluate(name, _dumps(facts), call))
        received = monotonic()
        self.clock.observe(sent, received, answer["at"])
        if received - sent > self.node.settings.heartbeat_interval:
            self.node.recovery.stalled()
        return answer

    async def _evaluate(self, name: str, facts: str, call: Call) -> bytes:
        script = self.scripts[name]
        try:
            try:
                return cast("bytes", await call("EVALSHA", script.sha, 0, facts))
            except hiredis.ReplyError as error:
                if not str(error).startswith("NOSCRIPT"):
                    raise
                return cast("bytes", await call("EVAL", script.text, 0, facts))
        except hiredis.ReplyError as error:
            self.node.events.log("error", f"Redis refused script {name}: {error}")
            raise RedisAway(f"Redis refused script {name}.") from error

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
        """Sessions ended by this pass; None when the run came too late to judge heartbeats."""
        answer = await self.run("reap", {"deadlineMs": deadline_ms})
        return None if answer.get("late") else list(answer["ended"])

    async def restore(self, session: Record, call: Call) -> verdicts.Restored:
        return cast("verdicts.Restored", await self.run("restore", {"session": session}, call))

    async def gauges(self) -> list[verdicts.InstanceGauges]:
        return list((await self.run("gauges", {}))["instances"])
