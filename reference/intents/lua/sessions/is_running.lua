-- Tells whether a worker has taken the session and has not ended it.
local function is_running(session)
  return session.state == 'STARTING' or session.state == 'READY'
end
