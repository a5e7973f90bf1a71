"""Violations of the atomic admission rows: who gets in, and what an admission writes."""

import asyncio
import json
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar

from holdfast.reference.admission.mutants.registry import violates, violation
from holdfast.reference.admission.mutants.rescripted import Lua, Rescripted
from holdfast.reference.admission.mutants.split import RECORD, Split
from holdfast.reference.admission.redislink import Call
from holdfast.reference.admission.store import Store
from holdfast.reference.admission.verdicts import Record, Verdict

if TYPE_CHECKING:
    from holdfast.reference.admission.node import Node

MINUTE = 60.0


violation(
    "AD-ADMIT-01",
    1,
    "Success comes without a reconnectionToken.",
    lua={"success": "return allowance(facts, {outcome = 'success', sessionId = session.sessionId}, used_up(facts))"},
)

# Selected is the character that the user has asked for first.
violation(
    "AD-ADMIT-01",
    2,
    "The user's currently selected character is admitted instead of the requested one.",
    lua={
        "admit": """
local selected = key('selected', facts.userId)
write('SET', selected, facts.characterId, 'NX')
facts.characterId = redis.call('GET', selected)
local session = new_session(facts)
journal(facts, {kind = 'admission', moved = leave_other_queue(facts)})
add_session(session, milliseconds(facts))
return success(facts, session)"""
    },
)

violation(
    "AD-ADMIT-02",
    1,
    "The comparison lets one session too many in.",
    lua={"has_room": "return active_count(instanceId) <= capacity_of(instanceId)"},
)

violation(
    "AD-ADMIT-02",
    2,
    "The count is raised before the checks and not undone on refusal.",
    lua={
        "character_given": """
if facts.characterId == '' then
  return refuse(facts, 'NO_ACTIVE_CHARACTER')
elseif facts.kind == 'admit' then
  write('SADD', slots_key(facts.instanceId), facts.newSessionId)
end""",
        "may_enter": """
return active_count(facts.instanceId) <= capacity_of(facts.instanceId) and depth_of(facts.instanceId) == 0""",
        "queued": """
write('SREM', slots_key(facts.instanceId), facts.newSessionId)
return allowance(facts, {outcome = 'queued', position = position, depth = depth}, used_up(facts))""",
    },
)


@violates("AD-ADMIT-03", 1, "Capacity is read and the session written in a second round trip.")
class ReadThenWrite(Split):
    """Only what makes a session is written later; queue and limiter are as atomic as ever."""

    record = f"""
if not string.find(select(2, ...), 'session:', 1, true) then
  return redis.call(...)
end
{RECORD}"""


@violates("AD-ADMIT-03", 2, "A lock inside the process guards the check, so each node lets in its own share.")
class LockInTheProcess(ReadThenWrite):
    mutex = True


@violates("AD-ADMIT-03", 3, "Nodes cache the capacity for a minute.")
class CachedCapacity(Rescripted):
    """A node that is told of another capacity forgets the old one; the others can't know."""

    lua: ClassVar[Lua] = {
        "may_enter": """
return active_count(facts.instanceId) < tonumber(facts.capacity or limits.defaultCapacity)
  and depth_of(facts.instanceId) == 0"""
    }

    def __init__(self, node: "Node") -> None:
        super().__init__(node)
        self.cache: dict[str, tuple[float, str | None]] = {}

    async def run(self, name: str, facts: Record, call: Call | None = None) -> Any:
        answer = await super().run(name, facts, call)
        if name == "register_instance":
            self.cache.pop(facts["instanceId"], None)
        return answer

    async def decide(self, facts: Record) -> Verdict:
        return await super().decide(facts | {"capacity": await self.capacity(facts["instanceId"])})

    async def capacity(self, instance_id: str) -> str | None:
        until, capacity = self.cache.get(instance_id, (0.0, None))
        if monotonic() >= until:
            found = await self.node.link.call("GET", self.name("instance:capacity", instance_id))
            capacity = found and found.decode()
            self.cache[instance_id] = monotonic() + MINUTE, capacity
        return capacity


@violates("AD-ADMIT-03", 4, "The queue length is read in a separate command before the enqueue.")
class LengthReadBefore(Rescripted):
    lua: ClassVar[Lua] = {"queue_cap": "if facts.length >= limits.queueCap then return refuse(facts, 'QUEUE_FULL') end"}

    async def decide(self, facts: Record) -> Verdict:
        length = await self.node.link.call("ZCARD", self.name("queue:pending", facts["instanceId"]))
        return await super().decide(facts | {"length": length})


@violates("AD-ADMIT-04", 1, "A pending session record is written first and forgotten on refusal.")
class PendingFirst(Store):
    async def decide(self, facts: Record) -> Verdict:
        record = f"{self.node.settings.prefix}session:data:{facts['newSessionId']}"
        if facts["kind"] == "admit":
            await self.node.link.call("SET", record, json.dumps({**facts, "state": "pending"}))
        verdict = await super().decide(facts)
        if verdict["outcome"] == "queued":
            await self.node.link.call("DEL", record)
        return verdict


@violates("AD-ADMIT-04", 2, "Record, marker and count are three separate writes.")
class ThreeWrites(Split):
    """The script still writes the record; marker and count follow."""

    record = f"""
local name = select(2, ...)
if not string.find(name, 'session:char:', 1, true) and not string.find(name, 'session:instance:', 1, true) then
  return redis.call(...)
end
{RECORD}"""


# Like a confirmed replacement, but nobody was asked.
violation(
    "AD-ADMIT-09",
    1,
    "The second attempt silently takes over.",
    lua={
        "existing_session": """
local old = session_of(facts)
if not old then
  return nil
end
local session = new_session(facts)
journal(facts, {kind = 'admission'})
end_session(old, 'replace', milliseconds(facts))
add_session(session, milliseconds(facts))
local verdict = success(facts, session)
verdict.replaced = {sessionId = old.sessionId, socket = old.socket}
return verdict"""
    },
)


@violates("AD-ADMIT-09", 2, "Existence check and write are separate commands, so two attempts pass.")
class CheckThenWrite(Rescripted):
    lua: ClassVar[Lua] = {
        "existing_session": """
local session = facts.marked and session_by_id(facts.marked)
if not session then
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
        marked = await self.node.link.call("GET", self.name("session:char", facts["characterId"]))
        return await super().decide(facts | ({"marked": marked.decode()} if marked else {}))


@violates("AD-ADMIT-09", 3, "A mutex per process protects the check.")
class MutexPerProcess(CheckThenWrite):
    def __init__(self, node: "Node") -> None:
        super().__init__(node)
        self.mutex = asyncio.Lock()

    async def decide(self, facts: Record) -> Verdict:
        async with self.mutex:
            return await super().decide(facts)


violation(
    "AD-ADMIT-09",
    4,
    "The active marker is keyed by instance and character.",
    lua={"marker_key": "return key('session:char', instanceId .. ':' .. characterId)"},
)
