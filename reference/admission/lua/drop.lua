-- A socket lost without a leave: the session keeps its slot and can be reclaimed for the grace period.
local function drop(facts)
  local session = session_by_id(facts.sessionId)
  if not holds(facts, session) then
    return {dropped = false}
  end
  start_grace(session, milliseconds(facts))
  return {dropped = true}
end
