-- After a crash nobody has set grace, so an active session can be resumed as well.
local function resumable(facts, session)
  return session.state == 'active' or (session.state == 'grace' and session.graceExpiresAt > milliseconds(facts))
end
