"""Violations of the rows about one attempt against free and taken slots."""

from holdfast.reference.admission.mutants.table import violation

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
