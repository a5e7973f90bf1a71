"""Violations of the rows about drain mode."""

from typing import Any, ClassVar

from aiohttp import web

from holdfast.reference.admission.admin import Admin
from holdfast.reference.admission.follow_ups import FollowUps
from holdfast.reference.admission.mutants.rescripted import Rescripted, ahead
from holdfast.reference.admission.mutants.table import violates, violation
from holdfast.reference.admission.rules import Rules
from holdfast.reference.admission.verdicts import Record, Verdict


@violates("AD-DRAIN-01", 1, "Drain blocks only the queue, free slots are still given out.")
class FreeSlotsFirst(Rules):
    precedence = ahead("free_slot", "drain")


violation(
    "AD-DRAIN-01",
    2,
    "Newcomers to a full instance are queued during drain.",
    lua={
        "drain": """
if draining(facts.instanceId) and (facts.kind ~= 'admit' or may_enter(facts)) then
  return refuse(facts, 'DRAIN_MODE')
end"""
    },
)

violation(
    "AD-DRAIN-02",
    1,
    "Promotion is suspended in drain mode.",
    lua={"may_promote": "return has_room(instanceId) and serving(instanceId) and not draining(instanceId)"},
)


@violates("AD-DRAIN-02", 2, "The drain check at the route refuses reconnects.")
class DrainsReconnects(Rules):
    precedence = Rules.precedence | {"reconnect": ("drain", *Rules.precedence["reconnect"])}


@violates("AD-DRAIN-02", 3, "All sockets are closed when drain starts.")
class ClosesSockets(Admin):
    async def switch_drain(self, instance_id: str, body: dict[str, Any]) -> dict[str, Any]:
        switched = await super().switch_drain(instance_id, body)
        for socket in list(self.node.sockets.open.values()):
            if switched["drainMode"] and socket.session["instanceId"] == instance_id:
                await self.node.sockets.close(socket.id, 1001)
        return switched


violation(
    "AD-DRAIN-02",
    4,
    "A waiting character that asks again hears DRAIN_MODE and loses its place.",
    lua={
        "already_waiting": """
local entry = entry_of(facts.characterId)
local position = entry and entry.instanceId == facts.instanceId and position_of(facts.characterId, facts.instanceId)
if position and draining(facts.instanceId) then
  remove_entry(entry)
elseif position then
  told(entry.attemptId)
  return queued(facts, position, depth_of(facts.instanceId))
end"""
    },
)


@violates("AD-DRAIN-02", 5, "Status polls of a draining instance answer 503.")
class NoPolls(FollowUps):
    async def status(self, request: web.BaseRequest, instance_id: str) -> web.Response:
        draining = (await self.node.store.run("drain_modes", {}))["instances"]
        if instance_id in {each["instanceId"] for each in draining}:
            return self.node.http.unavailable()
        return await super().status(request, instance_id)


violation(
    "AD-DRAIN-03",
    1,
    "There is one global drain flag.",
    lua={"drain_key": "return limits.prefix .. 'session:drain'"},
)

violation(
    "AD-DRAIN-03",
    2,
    "The flag is kept in the memory of the node that was told.",
    lua={"drain_key": "return key('session:drain', limits.node .. ':' .. instanceId)"},
)


@violates("AD-DRAIN-03", 3, "The flag is tested before the script, so attempts in flight still enqueue.")
class TestedBefore(Rescripted):
    lua: ClassVar = {"drain": "if facts.draining then return refuse(facts, 'DRAIN_MODE') end"}

    async def decide(self, facts: Record) -> Verdict:
        draining = await self.node.link.call("EXISTS", self.name("session:drain", facts["instanceId"]))
        return await super().decide(facts | {"draining": draining == 1})


# Once a node has seen the flag it goes on draining, since it never looks whether the flag is gone.
violation(
    "AD-DRAIN-03",
    4,
    "The flag is read once and switching off has no effect.",
    lua={
        "draining": """
local seen = key('drain:seen', limits.node .. ':' .. instanceId)
if redis.call('EXISTS', drain_key(instanceId)) == 1 then
  write('SET', seen, 1)
end
return redis.call('EXISTS', seen) == 1"""
    },
)


@violates("AD-DRAIN-04", 1, "A replacement token bypasses the drain check.")
class ReplacesInDrain(Rules):
    precedence = Rules.precedence | {"replace": tuple(step for step in Rules.precedence["replace"] if step != "drain")}
