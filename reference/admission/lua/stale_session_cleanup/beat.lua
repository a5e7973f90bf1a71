-- Records a heartbeat of the socket that holds the session, or returns why it no longer holds it.
local function beat(facts)
  local session = session_by_id(facts.sessionId)
  local now_ms = milliseconds(facts)
  if session and session.socket == facts.socket then
    touch(session, now_ms)
    return {alive = true}
  end
  local ended = load(key('ended', facts.sessionId))
  return {alive = false, taken = session ~= nil, ended = ended and ended.reason,
    endedMsAgo = ended and now_ms - ended.at}
end
