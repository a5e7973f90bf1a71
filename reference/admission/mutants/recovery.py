"""Violations of the rows about sessions and service after Redis was away."""

import asyncio
from typing import ClassVar

from holdfast.reference.admission.attempts import fresh_id
from holdfast.reference.admission.mutants.outage import tries_again
from holdfast.reference.admission.mutants.rescripted import Rescripted
from holdfast.reference.admission.mutants.table import violates, violation
from holdfast.reference.admission.recovery import Recovery
from holdfast.reference.admission.store import Store
from holdfast.reference.admission.verdicts import Beat, Record, Verdict
from holdfast.reference.shared.redislink import Call, RedisAway, RedisLink

TRIES = 10


@violates("AD-OUT-03", 1, "A failed heartbeat write closes the socket.")
class ClosesTheSocket(Store):
    async def beat(self, session_id: str, socket: str) -> Beat:
        try:
            return await super().beat(session_id, socket)
        except RedisAway:
            await self.node.sockets.close(socket, 1011)
            raise


@violates("AD-OUT-03", 2, "The first janitor run after recovery sees old heartbeat times and ends every session.")
class OldHeartbeats(Recovery):
    async def put_right(self, call: Call) -> None:
        """Nothing is written again, and the janitor is not held."""


@violates("AD-OUT-04", 1, "The Redis connection is not re-established after the client library gave up.")
class GivesUp(RedisLink):
    known, tries = 0, 0

    async def before_retry(self) -> None:
        self.tries = self.tries + 1 if self.connections == self.known else 0
        self.known = self.connections
        if self.tries > TRIES:
            await asyncio.get_running_loop().create_future()
        await super().before_retry()


@violates("AD-OUT-04", 2, "On recovery the node rewrites its sessions under new ids.")
class NewIds(Recovery):
    async def restore(self, session: Record, socket_id: str, call: Call) -> None:
        old = {name: session[name] for name in ("sessionId", "userId", "instanceId")}
        await self.node.store.run("leave", old, call)
        session["sessionId"] = fresh_id()
        await super().restore(session, socket_id, call)


@violates("AD-OUT-04", 3, "The script is retried with a fresh session id and both ids stay in the instance set.")
class RetriedScript(Rescripted):
    """The second run takes the session of the first for its own and writes over it."""

    lua: ClassVar = {
        "existing_session": """
local session = session_of(facts)
if not session or session.attemptId == facts.attemptId then
  return nil
end
told(session.attemptId)
local verdict = refuse(facts, 'ALREADY_IN_SESSION')
if offers_replacement(facts, session) then
  verdict.replacementToken = offer_replacement(facts, session)
end
return verdict"""
    }

    async def decide(self, facts: Record) -> Verdict:
        try:
            return await super().decide(facts)
        except RedisAway:
            await tries_again(self.node.link, 1)
            return await super().decide(facts | {"newSessionId": fresh_id()})


violation(
    "AD-OUT-05",
    1,
    "The active count restarts at 0 while the old sockets play on.",
    lua={
        "restore": """
local session = session_by_id(facts.session.sessionId)
local mine = not session or session.socket == facts.session.socket
if session and mine then
  touch(session, milliseconds(facts))
end
return {kept = mine, taken = not mine}"""
    },
)
