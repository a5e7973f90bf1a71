"""Violations of the waiting line rows: rank, order, clocks, cap and polls."""

import asyncio
from time import monotonic
from typing import ClassVar

from holdfast.reference.admission.mutants.registry import violates, violation
from holdfast.reference.admission.mutants.rescripted import Lua, Rescripted, ahead
from holdfast.reference.admission.promoter import Promoter
from holdfast.reference.admission.rules import Rules
from holdfast.reference.admission.store import Store
from holdfast.reference.admission.verdicts import Promoted, Record, Status, Verdict

violation(
    "AD-QUEUE-01",
    1,
    "A Redis list is used and the position guessed from its length.",
    lua={
        "store_entry": """
write('RPUSH', queue_key(entry.instanceId), entry.characterId)
write('SET', key('queue:entry', entry.characterId), cjson.encode(entry))""",
        "remove_entry": """
write('LREM', queue_key(entry.instanceId), 0, entry.characterId)
write('DEL', key('queue:entry', entry.characterId))""",
        "depth_of": "return redis.call('LLEN', queue_key(instanceId))",
        "pick_next": "return redis.call('LINDEX', queue_key(instanceId), 0)",
        "position_of": """
local entry = entry_of(characterId)
return entry and entry.instanceId == instanceId and depth_of(instanceId) - 1 or nil""",
        "last_score": "return 0",
        "score_of": "return entry_of(characterId).enqueuedAt * 1000",
    },
)

violation(
    "AD-QUEUE-01",
    2,
    "Positions are reported from 1.",
    lua={
        "position_of": """
local rank = redis.call('ZRANK', queue_key(instanceId), characterId)
return rank and rank + 1"""
    },
)

violation(
    "AD-QUEUE-02",
    1,
    "The score is a random number or the character's creation time.",
    lua={
        "enqueue_score": """
math.randomseed(now % 2 ^ 30)
return math.random(2 ^ 30)"""
    },
)

violation(
    "AD-QUEUE-02",
    2,
    "Scores have millisecond resolution, so equal ones fall back to the order of ids.",
    lua={"enqueue_score": "return math.max(last, math.floor(now / 1000) * 1000)"},
)


@violates("AD-QUEUE-03", 1, "The score is the node's wall clock sent as a script argument.")
class WallClockScore(Rescripted):
    lua: ClassVar[Lua] = {"enqueue_time": "return facts.wallMs * 1000", "enqueue_score": "return now"}

    async def decide(self, facts: Record) -> Verdict:
        return await super().decide(facts | {"wallMs": self.wall_ms()})


@violates("AD-QUEUE-03", 2, "The promoting node subtracts the stored time from its own clock.")
class OwnClockWait(Promoter):
    async def promote_one(self, instance_id: str) -> Promoted:
        promoted = await super().promote_one(instance_id)
        if promoted["promoted"]:
            enqueued = promoted["at"] - promoted["waitMs"]
            promoted["waitMs"] = self.node.events.wall_clock() * 1000 - enqueued
        return promoted


@violates("AD-QUEUE-04", 1, "graceExpiresAt is compared with the node's wall clock.")
class WallClockGrace(Rescripted):
    lua: ClassVar[Lua] = {"resumable": "return session.state == 'active' or session.graceExpiresAt > facts.wallMs"}

    async def decide(self, facts: Record) -> Verdict:
        return await super().decide(facts | {"wallMs": self.wall_ms()})


@violates("AD-QUEUE-04", 2, "lockedUntil is compared with the node's wall clock.")
class WallClockLock(Rescripted):
    lua: ClassVar[Lua] = {
        "lock_left": """
local left = (redis.call('GET', lock_key(facts)) or 0) - facts.wallMs
return left > 0 and left or nil"""
    }

    async def decide(self, facts: Record) -> Verdict:
        return await super().decide(facts | {"wallMs": self.wall_ms()})


violation(
    "AD-QUEUE-04",
    3,
    "A plain timestamp puts the newcomer first after a step back.",
    lua={"enqueue_score": "return now"},
)

violation(
    "AD-QUEUE-05",
    1,
    "The entry is written again with the new timestamp, sending the character to the tail.",
    lua={
        "already_waiting": """
local entry = entry_of(facts.characterId)
if not entry or entry.instanceId ~= facts.instanceId then
  return nil
end
told(entry.attemptId)
store_entry(entry, enqueue_score(last_score(facts.instanceId), facts.now))
return queued(facts, position_of(facts.characterId, facts.instanceId), depth_of(facts.instanceId))"""
    },
)


@violates(
    "AD-QUEUE-05",
    2,
    "The cap is tested before the already-waiting case, so a waiting character hears QUEUE_FULL.",
)
class CapBeforeWaiting(Rules):
    precedence = ahead("queue_cap", "already_waiting")


violation(
    "AD-QUEUE-06",
    1,
    "Admission looks at capacity only, so a newcomer takes the freed slot.",
    lua={"may_enter": "return has_room(facts.instanceId)"},
)

violation(
    "AD-QUEUE-06",
    2,
    "A retry by a waiting character is treated as a fresh attempt and admitted when a slot is free.",
    lua={
        "already_waiting": """
local entry = entry_of(facts.characterId)
local here = entry and entry.instanceId == facts.instanceId
local position = here and position_of(facts.characterId, facts.instanceId)
if not position then
  return nil
elseif has_room(facts.instanceId) then
  return admit(facts)
end
told(entry.attemptId)
return queued(facts, position, depth_of(facts.instanceId))"""
    },
)

violation("AD-QUEUE-07", 1, "No cap is enforced.", lua={"queue_cap": "return nil"})

violation(
    "AD-QUEUE-07",
    2,
    "Refusal starts one entry early, at length 999.",
    settings=lambda given: {"queue_cap": given.queue_cap - 1},
)

violation(
    "AD-QUEUE-07",
    3,
    "CAPACITY_FULL is used instead of QUEUE_FULL.",
    lua={
        "queue_cap": """
if depth_of(facts.instanceId) >= limits.queueCap then
  return refuse(facts, 'CAPACITY_FULL', {message = 'The instance and its queue are full.'})
end"""
    },
)

violation(
    "AD-QUEUE-07",
    4,
    "A full flag is set and cleared only when the queue is empty.",
    lua={
        "queue_cap": """
local flag, depth = key('queue:full', facts.instanceId), depth_of(facts.instanceId)
if depth >= limits.queueCap then
  write('SET', flag, '1')
elseif depth == 0 then
  write('DEL', flag)
end
if redis.call('EXISTS', flag) == 1 then
  return refuse(facts, 'QUEUE_FULL')
end"""
    },
)

# Who has left is neither shown nor promoted, but those behind wait for one more.
violation(
    "AD-QUEUE-08",
    1,
    "The entry is only marked as abandoned and keeps its rank.",
    lua={
        "unqueue": """
local character = character_of(facts)
if character and not owns(facts, character.userId) then
  return {foreign = true}
end
if not position_of(facts.characterId, facts.instanceId) then
  return {removed = false}
end
write('SADD', key('queue:abandoned', facts.instanceId), facts.characterId)
return {removed = true}""",
        "position_of": """
local abandoned = redis.call('SISMEMBER', key('queue:abandoned', instanceId), characterId) == 1
return not abandoned and redis.call('ZRANK', queue_key(instanceId), characterId)""",
        "store_entry": """
write('SREM', key('queue:abandoned', entry.instanceId), entry.characterId)
write('ZADD', queue_key(entry.instanceId), score, entry.characterId)
write('SET', key('queue:entry', entry.characterId), cjson.encode(entry))""",
        "may_be_promoted": """
local character = character_of(facts)
local abandoned = redis.call('SISMEMBER', key('queue:abandoned', facts.instanceId), facts.characterId) == 1
return not abandoned and character and not character.suspended and not session_of(facts)""",
    },
)


@violates("AD-QUEUE-09", 1, "The whole queue is fetched from Redis to find one position.")
class WholeQueue(Store):
    async def status(self, user_id: str, character_id: str, instance_id: str) -> Status:
        found = await super().status(user_id, character_id, instance_id)
        queue = f"{self.node.settings.prefix}queue:pending:{instance_id}"
        members = await self.node.link.call("ZRANGE", queue, 0, -1)
        if found["state"] == "queued" and character_id.encode() in members:
            found["position"] = members.index(character_id.encode())
        return found


@violates("AD-QUEUE-09", 2, "Each poll waits for the next run of a position table refreshed every 200 ms.")
class PositionTable(Store):
    refresh = 0.2

    async def status(self, user_id: str, character_id: str, instance_id: str) -> Status:
        await asyncio.sleep(self.refresh - monotonic() % self.refresh)
        return await super().status(user_id, character_id, instance_id)
