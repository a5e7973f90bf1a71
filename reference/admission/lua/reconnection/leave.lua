-- Ends a session by the wish of its user, without grace. A leave that a socket sends counts only while that
-- socket holds the session.
local function leave(facts)
  local session = session_by_id(facts.sessionId)
  if not session or session.instanceId ~= facts.instanceId or (facts.socket and not holds(facts, session)) then
    return {found = false}
  end
  if not owns(facts, session.userId) then
    return {found = true, foreign = true, characterId = session.characterId}
  end
  end_session(session, 'user', milliseconds(facts))
  return {found = true, characterId = session.characterId, socket = session.socket}
end
