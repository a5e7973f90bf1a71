-- Compare-and-set of the state: moves the session only from one of the states in `from`. READY is refused once a stop
-- was noted, so that a stop wins over a start under way.
local function move_session(facts)
  local session = load_session(facts.sessionId)
  if not session or not may_move(session, facts) then
    return {moved = false, state = session and session.state}
  end
  set_state(session, facts)
  return {moved = true, from = session.state}
end
