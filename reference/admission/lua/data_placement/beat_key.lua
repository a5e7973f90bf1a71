local function beat_key(session)
  return key('session:heartbeat', session.instanceId .. ':' .. session.sessionId)
end
