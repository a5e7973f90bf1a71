-- Puts the old token and state back, unless the session has been resumed again since.
local function undo_resume(facts, before)
  local session = session_by_id(before.sessionId)
  if not session or session.reconnectionToken ~= facts.newToken then
    return
  end
  write('DEL', token_key(session.reconnectionToken))
  session.reconnectionToken = before.token
  session.state = before.state
  session.graceExpiresAt = before.graceExpiresAt
  store_session(session)
  store_token(session, before.tokenExpiresAt)
  if before.state == 'grace' then
    write('ZADD', grace_key(), before.graceExpiresAt, session.sessionId)
    write('DEL', beat_key(session))
  end
end
