-- Tells whether a mapping still binds: the session waits to be started, or a worker holds it by a lease that has not
-- run out. A mapping alone proves nothing, because a killed worker leaves it behind.
local function is_live(session, facts)
  if session.state == 'NEW' then
    return session.stopRequestedAtMs == nil
  end
  return is_running(session) and tonumber(session.leaseExpiresAtMs or 0) > milliseconds(facts)
end
