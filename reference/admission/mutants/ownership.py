"""Violations of the rows about ownership."""

from holdfast.reference.admission.mutants.table import violation

violation("AD-SEC-01", 1, "Only existence of the character is verified.", lua={"character_owned": "return nil"})

# A character that waits already is not enqueued again, so it keeps its place.
violation(
    "AD-SEC-01",
    2,
    "The character is enqueued first and removed when the ownership look-up fails.",
    lua={
        "character_owned": """
if owns(facts, character_of(facts).userId) then
  return nil
end
if not entry_of(facts.characterId) then
  local entry = {characterId = facts.characterId, userId = facts.userId, instanceId = facts.instanceId}
  store_entry(entry, facts.now)
  remove_entry(entry)
end
return refuse(facts, 'CHARACTER_NOT_OWNED')"""
    },
)

OWNED_UNLESS = """
if facts.kind ~= '{kind}' and not owns(facts, character_of(facts).userId) then
  return refuse(facts, 'CHARACTER_NOT_OWNED')
end"""

violation(
    "AD-SEC-02",
    1,
    "The reconnection token alone authorises the reconnect.",
    lua={
        "character_owned": OWNED_UNLESS.format(kind="reconnect"),
        "token_fits": "return record.characterId == facts.characterId and record.instanceId == facts.instanceId",
    },
)

violation(
    "AD-SEC-02",
    2,
    "Whoever holds the replacement token may use it.",
    lua={
        "character_owned": OWNED_UNLESS.format(kind="replace"),
        "offer_fits": """
return offer.characterId == facts.characterId and offer.instanceId == facts.instanceId
  and offer.existingSessionId == session.sessionId""",
    },
)

violation(
    "AD-SEC-02",
    3,
    "A foreign presentation is refused but consumes the token.",
    lua={
        "character_owned": """
if owns(facts, character_of(facts).userId) then
  return nil
end
if facts.reconnectionToken then
  write('DEL', token_key(facts.reconnectionToken))
elseif facts.replaceToken then
  consume_offer(facts)
end
return refuse(facts, 'CHARACTER_NOT_OWNED')"""
    },
)

violation(
    "AD-SEC-03",
    1,
    "disconnect trusts the sessionId in the body.",
    lua={
        "leave": """
local session = session_by_id(facts.sessionId)
if not session or session.instanceId ~= facts.instanceId or (facts.socket and not holds(facts, session)) then
  return {found = false}
end
end_session(session, 'user', milliseconds(facts))
return {found = true, characterId = session.characterId, socket = session.socket}"""
    },
)

violation(
    "AD-SEC-03",
    2,
    "Queue leave and cancel trust the id in the query.",
    lua={
        "unqueue": """
local entry = entry_of(facts.characterId)
local waiting = entry ~= nil and entry.instanceId == facts.instanceId
if waiting then
  remove_entry(entry)
end
return {removed = waiting}""",
        "cancel": """
local offer = load(key('replacement', facts.replaceToken))
if not offer or offer.instanceId ~= facts.instanceId then
  return {cancelled = false}
end
consume_offer(facts)
return {cancelled = true}""",
    },
)

violation(
    "AD-SEC-03",
    3,
    "Status gives a promoted character's sessionId and reconnectionToken to any caller.",
    lua={
        "status": """
local character = character_of(facts)
local session = session_of(facts)
if session and session.unclaimed and session.instanceId == facts.instanceId then
  return {state = 'admitted', position = 0, depth = depth_of(facts.instanceId), sessionId = session.sessionId,
    reconnectionToken = session.reconnectionToken}
end
local position = position_of(facts.characterId, facts.instanceId)
if not position or not owns(facts, character.userId) then
  return {state = 'absent'}
end
return {state = 'queued', position = position, depth = depth_of(facts.instanceId)}"""
    },
)

violation(
    "AD-SEC-03",
    4,
    "The WebSocket accepts any user who knows the sessionId.",
    lua={
        "attach_refusal": """
if not session or session.instanceId ~= facts.instanceId then
  return 'unknown_session'
elseif session.socket then
  return 'has_socket'
elseif session.state ~= 'active' then
  return 'token_needed'
end"""
    },
)
