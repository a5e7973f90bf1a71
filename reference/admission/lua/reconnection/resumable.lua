-- Tells whether the session can be resumed. An active one can, because after a crash of its node nobody has
-- started the grace.
local function resumable(facts, session)
  return session.state == 'active' or (session.state == 'grace' and session.graceExpiresAt > milliseconds(facts))
end
