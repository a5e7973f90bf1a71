-- Binds a socket to a session. The first socket claims a promoted session.
local function attach(facts)
  local session = session_by_id(facts.sessionId)
  local refusal = attach_refusal(facts, session)
  if refusal then
    return {refused = refusal}
  end
  session.socket = facts.socket
  session.unclaimed = nil
  touch(session, milliseconds(facts))
  return {session = session}
end
