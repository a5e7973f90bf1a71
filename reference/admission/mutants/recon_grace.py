"""Violations of the rows about grace, resuming within it, and leaving without it."""

from holdfast.reference.admission.mutants.table import violation

violation(
    "AD-RECON-02",
    1,
    "The session is ended as soon as its socket closes.",
    lua={
        "drop": """
local session = session_by_id(facts.sessionId)
local dropped = holds(facts, session)
if dropped then
  end_session(session, 'network', milliseconds(facts))
end
return {dropped = dropped}"""
    },
)

violation(
    "AD-RECON-02",
    2,
    "Only sessions in state active are counted, so the slot is given away during grace.",
    lua={
        "active_count": """
local count = 0
for _, sessionId in ipairs(redis.call('SMEMBERS', slots_key(instanceId))) do
  local session = session_by_id(sessionId)
  count = count + (session and session.state == 'active' and 1 or 0)
end
return count"""
    },
)

violation(
    "AD-RECON-03",
    1,
    "A new session id is made on reconnect.",
    lua={
        "resume": """
local session = new_session(facts)
end_session(facts.session, 'network', milliseconds(facts))
add_session(session, milliseconds(facts))
local verdict = success(facts, session)
verdict.reconnected = true
return verdict"""
    },
)

violation(
    "AD-RECON-03",
    2,
    "The grace timer is not cancelled and ends the resumed session.",
    lua={"cancel_grace": "", "grace_over": "return true"},
)

violation(
    "AD-RECON-03",
    3,
    "Reconnect goes through the capacity check and is queued behind b.",
    lua={
        "old_socket": """
if not may_enter(facts) then
  return enqueue(facts)
end
local socket = facts.session.socket
if socket and socket ~= facts.evicted then
  return {outcome = 'occupied', socket = socket}
end"""
    },
)

violation(
    "AD-RECON-03",
    4,
    "Reconnect raises the active count a second time.",
    lua={
        "rotate_token": """
write('SADD', slots_key(session.instanceId), session.sessionId .. ' again')
write('DEL', token_key(facts.reconnectionToken))
session.reconnectionToken = facts.newToken
store_token(session)"""
    },
)

# A leave with the checks that it has, and another ending.
LEAVE = """
local session = session_by_id(facts.sessionId)
if not session or session.instanceId ~= facts.instanceId or (facts.socket and not holds(facts, session)) then
  return {{found = false}}
end
if not owns(facts, session.userId) then
  return {{found = true, foreign = true, characterId = session.characterId}}
end
local socket = session.socket
{ending}
return {{found = true, characterId = session.characterId, socket = socket}}"""

violation(
    "AD-RECON-09",
    1,
    "A clean leave is treated like a drop and holds the slot for 60 s.",
    lua={"leave": LEAVE.format(ending="start_grace(session, milliseconds(facts))")},
)

violation(
    "AD-RECON-09",
    2,
    "The token record is left behind and revives the session.",
    lua={
        "leave": LEAVE.format(
            ending="""
write('DEL', marker_key(session.characterId, session.instanceId), beat_key(session))
write('SREM', slots_key(session.instanceId), session.sessionId)"""
        )
    },
)
