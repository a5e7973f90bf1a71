"""Violations of the rows about queue status."""

from time import monotonic
from typing import TYPE_CHECKING, Any

from aiohttp import web

from holdfast.reference.admission.follow_ups import FollowUps
from holdfast.reference.admission.http import Http
from holdfast.reference.admission.mutants.table import violates, violation
from holdfast.reference.admission.store import Store
from holdfast.reference.admission.verdicts import Record, Status, Verdict
from holdfast.reference.admission.wire import Refusal
from holdfast.reference.shared.redislink import Call

if TYPE_CHECKING:
    from holdfast.reference.admission.node import Node

violation(
    "AD-POLL-01",
    1,
    "A full instance answers failed / CAPACITY_FULL.",
    lua={"enqueue": "return refuse(facts, 'CAPACITY_FULL', {message = 'The instance is full.'})"},
)


@violates("AD-POLL-01", 2, "The position is given only in the connect response; status of a waiting character is 404.")
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
class PollsAreLimited(FollowUps):
    async def status(self, request: web.BaseRequest, instance_id: str) -> web.Response:
        """To the limiter a poll is an attempt that names no character."""
        facts = self.node.attempts.facts(self.node.http.received(request, instance_id), self.user(request, instance_id))
        if (await self.node.store.decide(facts))["reason"] == "RATE_LIMITED":
            raise Refusal(429, "RATE_LIMITED")
        return await super().status(request, instance_id)


@violates("AD-POLL-03", 2, "Each poll adds to connection_attempt_total.")
class PollsAreCounted(FollowUps):
    async def status(self, request: web.BaseRequest, instance_id: str) -> web.Response:
        self.node.metrics.count_attempt("queued")
        return await super().status(request, instance_id)


@violates("AD-POLL-03", 3, "Each poll refreshes the entry's timestamp as a keep-alive.")
class KeepAlive(FollowUps):
    async def status(self, request: web.BaseRequest, instance_id: str) -> web.Response:
        answer = await super().status(request, instance_id)
        queue = f"{self.node.settings.prefix}queue:pending:{instance_id}"
        now = self.node.store.clock.redis_ms(monotonic()) * 1000
        await self.node.link.call("ZADD", queue, "XX", now, self.character(request))
        return answer


@violates("AD-POLL-04", 1, "Positions are cached for 30 s.")
class CachedPositions(Store):
    def __init__(self, node: "Node") -> None:
        super().__init__(node)
        self.shown: dict[str, tuple[float, Status]] = {}

    async def status(self, user_id: str, character_id: str, instance_id: str) -> Status:
        found = await super().status(user_id, character_id, instance_id)
        if found["state"] != "queued":
            return found
        life, now = 6 * self.node.settings.poll_interval, monotonic()
        if now - self.shown.get(character_id, (0.0, found))[0] > life:
            self.shown[character_id] = (now, found)
        return self.shown[character_id][1]


@violates("AD-POLL-04", 2, "Each node serves its own snapshot, so alternating polls go up and down.")
class OwnSnapshot(Store):
    """Taken at the first poll, and anew after every change that this node has made itself."""

    def __init__(self, node: "Node") -> None:
        super().__init__(node)
        self.lines: dict[str, list[bytes]] = {}

    async def run(self, name: str, facts: Record, call: Call | None = None) -> Any:
        answer = await super().run(name, facts, call)
        if name in {"decide", "unqueue"} or answer.get("promoted"):
            self.lines.pop(facts["instanceId"], None)
        return answer

    async def status(self, user_id: str, character_id: str, instance_id: str) -> Status:
        found = await super().status(user_id, character_id, instance_id)
        if found["state"] == "queued" and instance_id not in self.lines:
            queue = f"{self.node.settings.prefix}queue:pending:{instance_id}"
            self.lines[instance_id] = await self.node.link.call("ZRANGE", queue, 0, -1)
        line = self.lines.get(instance_id, [])
        if found["state"] == "queued" and character_id.encode() in line:
            found["position"] = line.index(character_id.encode())
        return found


@violates("AD-POLL-05", 1, "The poll turns into 404 and a new connect answers ALREADY_IN_SESSION.")
class NeverTold(Store):
    async def status(self, user_id: str, character_id: str, instance_id: str) -> Status:
        found = await super().status(user_id, character_id, instance_id)
        return {"state": "absent"} if found["state"] == "admitted" else found


@violates("AD-POLL-05", 2, "The session is shown to one poll only; a lost reply loses it.")
class ToldOnce(Store):
    async def status(self, user_id: str, character_id: str, instance_id: str) -> Status:
        found = await super().status(user_id, character_id, instance_id)
        if found["state"] == "admitted":
            shown = f"{self.node.settings.prefix}shown:{found['sessionId']}"
            return found if await self.node.link.call("SET", shown, 1, "NX") else {"state": "absent"}
        return found


@violates("AD-POLL-06", 1, "Enabling push disables the status endpoint.")
class PushOnly(FollowUps):
    async def status(self, request: web.BaseRequest, instance_id: str) -> web.Response:
        if self.node.settings.push:
            raise Refusal(404, "NOT_FOUND")
        return await super().status(request, instance_id)
