-- Runs one janitor pass. State is checked in the run that removes, so each session is ended by exactly one janitor,
-- and one that was resumed at the last moment survives. A run that comes late changes nothing: Redis was stalled, so
-- heartbeats of live sockets may be missing from it.
local function reap(facts)
  local ended = {}
  local now_ms = milliseconds(facts)
  if too_late(facts) then
    return {late = true, ended = ended}
  end
  for _, sessionId in ipairs(expired_graces(facts)) do
    local session = session_by_id(sessionId)
    if session and grace_over(session, now_ms) then
      ended[#ended + 1] = reaped(session, 'grace_expired', now_ms)
    end
  end
  for _, sessionId in ipairs(silent_sessions(facts)) do
    local session = session_by_id(sessionId)
    if session and session.state == 'active' then
      ended[#ended + 1] = reaped(session, 'network', now_ms)
    end
  end
  return {ended = ended}
end
