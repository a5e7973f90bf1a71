"""Violations of the rows about expired graces, silent sessions and crashed nodes."""

import asyncio
from typing import Any, ClassVar

from holdfast.reference.admission.attempts import COARSE
from holdfast.reference.admission.mutants.rescripted import Rescripted
from holdfast.reference.admission.mutants.table import violates, violation
from holdfast.reference.admission.sockets import Socket, Sockets
from holdfast.reference.admission.verdicts import Ended, Record
from holdfast.reference.shared.redislink import Call

NEVER = 1e15


@violates("AD-STALE-01", 1, "The grace record has no expiry and depends on a timer of the node that wrote it.")
class TimerOfTheNode(Rescripted):
    lua: ClassVar = {
        "expired_graces": "return {facts.timer}",
        "resumable": "return true",
        "store_token": """
local record = {sessionId = session.sessionId, characterId = session.characterId, userId = session.userId,
  instanceId = session.instanceId}
write('SET', token_key(session.reconnectionToken), cjson.encode(record))""",
    }

    async def run(self, name: str, facts: Record, call: Call | None = None) -> Any:
        answer = await super().run(name, facts, call)
        if name == "drop" and answer["dropped"]:
            life = self.node.settings.grace + COARSE
            asyncio.get_running_loop().call_later(life, self.grace_is_over, facts["sessionId"])
        return answer

    def grace_is_over(self, session_id: str) -> None:
        self.node.recovery.owe("reap", {"timer": session_id, "deadlineMs": NEVER}, self.announce)

    def announce(self, reaped: Any) -> None:
        for session in reaped["ended"]:
            self.node.janitor.announce(session)
            self.node.promoter.wake(session["instanceId"])


violation(
    "AD-STALE-01",
    2,
    "The janitor runs every 5 minutes.",
    settings=lambda given: {"janitor_interval": 10 * given.janitor_interval},
)

REAPED = """
return {sessionId = session.sessionId, characterId = session.characterId, userId = session.userId,
  instanceId = session.instanceId, socket = session.socket, reason = reason}"""

violation(
    "AD-STALE-01",
    3,
    "The slot is freed but the character's marker stays, so connect(c) keeps answering ALREADY_IN_SESSION.",
    lua={
        "reaped": f"""
if reason == 'grace_expired' then
  write('SREM', slots_key(session.instanceId), session.sessionId)
  write('DEL', token_key(session.reconnectionToken))
  cancel_grace(session)
else
  end_session(session, reason, now_ms)
end
{REAPED}"""
    },
)

violation(
    "AD-STALE-02",
    1,
    "Only grace records are cleaned; silent active sessions stay until a 24 h TTL.",
    lua={
        "silent_sessions": "return {}",
        "store_session": """
write('SET', key('session:data', session.sessionId), cjson.encode(session), 'EX', 86400)""",
    },
)

violation(
    "AD-STALE-02",
    2,
    "A session is removed after one missed heartbeat.",
    lua={"is_stale": "return now_ms - tonumber(redis.call('GET', beat_key(session)) or 0) > limits.staleMs / 2"},
)


@violates("AD-STALE-02", 3, "Heartbeats are acknowledged but not recorded.")
class NotRecorded(Sockets):
    def beat(self, socket: Socket) -> None:
        """Nothing is written."""


violation(
    "AD-STALE-03",
    1,
    "Each node cleans only sessions it admitted itself.",
    lua={
        "new_session": """
return {sessionId = facts.newSessionId, characterId = facts.characterId, userId = facts.userId,
  instanceId = facts.instanceId, state = 'active', admittedAt = milliseconds(facts),
  reconnectionToken = facts.newToken, attemptId = facts.attemptId, node = limits.node}""",
        "reaped": f"""
if session.node ~= limits.node then
  return nil
end
end_session(session, reason, now_ms)
{REAPED}""",
    },
)


@violates("AD-STALE-03", 2, "The janitor walks its table of sockets, which is empty after a restart.")
class OwnTable(Rescripted):
    lua: ClassVar = {
        "silent_sessions": """
local found = {}
for _, session in ipairs(facts.open) do
  if is_stale(session, milliseconds(facts)) then
    found[#found + 1] = session.sessionId
  end
end
return found"""
    }

    async def reap(self, deadline_ms: float) -> list[Ended] | None:
        table = [socket.session for socket in self.node.sockets.open.values()]
        answer = await self.run("reap", {"deadlineMs": deadline_ms, "open": table})
        return None if answer.get("late") else list(answer["ended"])
