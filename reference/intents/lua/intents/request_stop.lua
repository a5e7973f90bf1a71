-- Notes on the record that its client wants it stopped, and tells the workers. An unknown or ended session, and one
-- that is to be stopped already, is left alone.
local function request_stop(facts)
  local session = load_session(facts.sessionId)
  if not session or is_terminal(session.state) or session.stopRequestedAtMs then
    return {noted = false}
  end
  publish(facts.event)
  change_session(facts.sessionId, {stopRequestedAtMs = whole(milliseconds(facts))}, facts)
  return {noted = true}
end
