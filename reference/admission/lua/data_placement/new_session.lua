local function new_session(facts)
  local session = {sessionId = facts.newSessionId, characterId = facts.characterId, userId = facts.userId,
    instanceId = facts.instanceId, state = 'active', admittedAt = milliseconds(facts),
    reconnectionToken = facts.newToken, attemptId = facts.attemptId}
  return session
end
