"""Violations of the rows about rank, order of arrival, asking again, overtaking and leaving."""

from holdfast.reference.admission.mutants.rescripted import ahead
from holdfast.reference.admission.mutants.table import violates, violation
from holdfast.reference.admission.rules import Rules

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

# A character that has left is neither shown nor promoted, but still counts in the rank of those behind it.
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
