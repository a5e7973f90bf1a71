"""Violations of the queue status rows."""

from time import monotonic
from typing import Any

from aiohttp import web

from holdfast.reference.admission.calls import Calls
from holdfast.reference.admission.http import Http
from holdfast.reference.admission.mutants.registry import violates, violation
from holdfast.reference.admission.redislink import Call
from holdfast.reference.admission.store import Store
from holdfast.reference.admission.verdicts import Record, Status, Verdict
from holdfast.reference.admission.wire import Refusal

violation(
    "AD-POLL-01",
    1,
    "A full instance answers failed / CAPACITY_FULL.",
    lua={"enqueue": "return refuse(facts, 'CAPACITY_FULL', {message = 'The instance is full.'})"},
)


@violates(
    "AD-POLL-01", 2, "The position is given only in the connect response; status of a waiting character is 404."
)
class OnlyOnce(Store):
    async def status(self, user_id: str, character_id: str, instance_id: str) -> Status:
        found = await super().status(user_id, character_id, instance_id)
        return {"state": "absent"} if found["state"] == "queued" else found


@violates("AD-POLL-01", 3, "Status of a character that is not waiting is 200 with position 0.")
class EverybodyIsNext(Store):
    async def status(self, user_id: str, character_id: str, instance_id: str) -> Status:
        found = await super().status(user_id, character_id, instance_id)
        return {"state": "queued", "position": 0, "depth": 0} if found["state"] == "absent" else found


@violates("AD-POLL-01", 4, "depth is active sessions plus waiting.")
class EverybodyCounts(Store):
    async def status(self, user_id: str, character_id: str, instance_id: str) -> Status:
        found = await super().status(user_id, character_id, instance_id)
        if "depth" in found:
            found["depth"] += sum(each["active"] for each in await self.gauges() if each["instanceId"] == instance_id)
        return found


@violates("AD-POLL-02", 1, "The field is declared but missing from the queued response.")
class NoCadence(Http):
    def add_outcome(self, body: dict[str, Any], verdict: Verdict) -> None:
        super().add_outcome(body, verdict)
        body.pop("pollAfterSeconds", None)


@violates("AD-POLL-02", 2, "The field is in milliseconds.")
class CadenceInMilliseconds(Http):
    def add_outcome(self, body: dict[str, Any], verdict: Verdict) -> None:
        super().add_outcome(body, verdict)
        if "pollAfterSeconds" in body:
            body["pollAfterSeconds"] *= 1000


@violates("AD-POLL-02", 3, "The field holds the estimated wait and grows with the position.")
class CadenceByPosition(Http):
    def add_outcome(self, body: dict[str, Any], verdict: Verdict) -> None:
        super().add_outcome(body, verdict)
        if "pollAfterSeconds" in body:
            body["pollAfterSeconds"] = max(body["pollAfterSeconds"], verdict["position"])


@violates("AD-POLL-03", 1, "Polls pass through the attempt limiter and lock the user after 5.")
class PollsAreLimited(Calls):
    async def status(self, request: web.BaseRequest, instance_id: str) -> web.Response:
        """To the limiter a poll is an attempt that names no character."""
        facts = self.node.attempts.facts(self.node.http.received(request, instance_id), self.user(request, instance_id))
        if (await self.node.store.decide(facts))["reason"] == "RATE_LIMITED":
            raise Refusal(429, "RATE_LIMITED")
        return await super().status(request, instance_id)


@violates("AD-POLL-03", 2, "Each poll adds to connection_attempt_total.")
class PollsAreCounted(Calls):
    async def status(self, request: web.BaseRequest, instance_id: str) -> web.Response:
        self.node.metrics.count_attempt("queued")
        return await super().status(request, instance_id)


@violates("AD-POLL-03", 3, "Each poll refreshes the entry's timestamp as a keep-alive.")
class KeepAlive(Calls):
    async def status(self, request: web.BaseRequest, instance_id: str) -> web.Response:
        answer = await super().status(request, instance_id)
        queue = f"{self.node.settings.prefix}queue:pending:{instance_id}"
        now = self.node.store.clock.redis_ms(monotonic()) * 1000
        await self.node.link.call("ZADD", queue, "XX", now, self.character(request))
        return answer


@violates("AD-POLL-04", 1, "Positions are cached for 30 s.")
class CachedPositions(Store):
    cache: dict[str, tuple[float, Status]]

    async def status(self, user_id: str, character_id: str, instance_id: str) -> Status:
        found = await super().status(user_id, character_id, instance_id)
        if found["state"] != "queued":
            return found
        thirty_seconds = 6 * self.node.settings.poll_interval
        until, cached = self.cache.get(character_id, (0.0, found))
        if until < monotonic():
            self.cache[character_id] = (monotonic() + thirty_seconds, found)
            return found
        return cached
