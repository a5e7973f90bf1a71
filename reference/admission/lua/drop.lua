-- A socket lost without a leave: the session keeps its slot and can be reclaimed for the grace period.
local function drop(facts)
  local session = session_by_id(facts.sessionId)
  if not holds(facts, session) then
    return {dropped = false}
  end
  local now_ms = milliseconds(facts)
  session.state = 'grace'
  session.socket = nil
  session.graceExpiresAt = now_ms + limits.graceMs
  store_session(session)
  store_token(session, now_ms + limits.tokenMs)
  write('ZADD', limits.prefix .. 'session:grace', session.graceExpiresAt, session.sessionId)
  write('DEL', beat_key(session))
  return {dropped = true}
end
