"""Violations of the Redis outage rows."""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar

from aiohttp import web

from holdfast.reference.admission.attempts import Attempt, Attempts, fresh_id
from holdfast.reference.admission.calls import Calls
from holdfast.reference.admission.http import Http
from holdfast.reference.admission.metrics import Metrics
from holdfast.reference.admission.mutants.registry import violates, violation
from holdfast.reference.admission.mutants.rescripted import Rescripted
from holdfast.reference.admission.recovery import Recovery
from holdfast.reference.admission.redislink import Call, RedisAway, RedisLink
from holdfast.reference.admission.store import Store
from holdfast.reference.admission.verdicts import Beat, Record, Verdict
from holdfast.reference.admission.wire import Refusal

if TYPE_CHECKING:
    from holdfast.reference.admission.node import Node

TRIES = 10
PAUSE = 0.1


async def tries_again(link: RedisLink, seconds: float) -> None:
    """As a client library does inside one call, until Redis is back or the library gives up."""
    for _ in range(round(seconds / PAUSE)):
        if link.up:
            return
        await asyncio.sleep(PAUSE)


@violates("AD-OUT-01", 1, "A bare 500 without any retry hint.")
class BareError(Http):
    def answered(self, attempt: Attempt, verdict: Verdict) -> web.Response:
        if verdict.get("reason") == "INTERNAL_ERROR":
            return web.Response(status=500)
        return super().answered(attempt, verdict)


@violates("AD-OUT-01", 2, "The client library retries for about 50 s before the handler sees an error.")
class PatientLibrary(Attempts):
    async def settle(self, attempt: Attempt) -> Verdict:
        await tries_again(self.node.link, 50)
        return await super().settle(attempt)


@violates(
    "AD-OUT-01", 3, "The status handler swallows the error and answers 404, so the client believes its place lost."
)
class Swallowed(Calls):
    async def status(self, request: web.BaseRequest, instance_id: str) -> web.Response:
        try:
            return await super().status(request, instance_id)
        except RedisAway:
            raise Refusal(404, "NOT_FOUND") from None


@violates("AD-OUT-02", 1, "The server falls back to an in-memory store and admits.")
class InMemory(Attempts):
    def outage(self, attempt: Attempt) -> Verdict:
        verdict = super().outage(attempt)
        if attempt.kind != "admit":
            return verdict
        return {"outcome": "success", "sessionId": fresh_id(), "reconnectionToken": fresh_id()}


@violates("AD-OUT-02", 2, "A cut-off node answers queued with a position from its cache.")
class CachedPlace(Attempts):
    def __init__(self, node: "Node") -> None:
        super().__init__(node)
        self.places: dict[str, Verdict] = {}

    def outage(self, attempt: Attempt) -> Verdict:
        return self.places.get(attempt.character_id) or super().outage(attempt)

    def finish(self, attempt: Attempt, verdict: Verdict) -> None:
        super().finish(attempt, verdict)
        if verdict["outcome"] == "queued":
            self.places[attempt.character_id] = verdict


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


@violates("AD-OUT-06", 1, "The scrape blocks on a Redis call for the gauges.")
class BlockingScrape(Metrics):
    async def scrape(self) -> bytes:
        with suppress(RedisAway):
            self.set_gauges(await self.node.store.gauges())
        return self.render()
