-- Ends a session and returns what the node has to log and to close.
local function reaped(session, reason, now_ms)
  end_session(session, reason, now_ms)
  return {sessionId = session.sessionId, characterId = session.characterId, userId = session.userId,
    instanceId = session.instanceId, socket = session.socket, reason = reason}
end
