-- Takes the socket from the session and starts grace and token life, both counted from here.
local function start_grace(session, now_ms)
  session.state = 'grace'
  session.socket = nil
  session.graceExpiresAt = now_ms + limits.graceMs
  store_session(session)
  store_token(session, now_ms + limits.tokenMs)
  write('ZADD', grace_key(), session.graceExpiresAt, session.sessionId)
  write('DEL', beat_key(session))
end
