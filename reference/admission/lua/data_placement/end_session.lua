-- Removes a session for good. The note `ended` lets a node that missed the message close the socket, and keeps
-- a node that was cut off from Redis from bringing the session back.
local function end_session(session, reason, now_ms)
  local marker = marker_key(session.characterId, session.instanceId)
  local marked = redis.call('GET', marker) == session.sessionId
  local token = token_key(session.reconnectionToken)
  local note = cjson.encode({reason = reason, at = now_ms})
  write('DEL', key('session:data', session.sessionId), token, beat_key(session))
  if marked then
    write('DEL', marker)
  end
  write('SREM', slots_key(session.instanceId), session.sessionId)
  cancel_grace(session)
  write('SET', key('ended', session.sessionId), note, 'PX', limits.journalMs)
end
