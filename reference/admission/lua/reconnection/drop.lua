-- Handles a socket that was lost without a leave: the session keeps its slot and can be reclaimed with its
-- token until the grace ends.
local function drop(facts)
  local session = session_by_id(facts.sessionId)
  if not holds(facts, session) then
    return {dropped = false}
  end
  start_grace(session, milliseconds(facts))
  return {dropped = true}
end
