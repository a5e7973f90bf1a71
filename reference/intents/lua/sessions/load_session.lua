-- Returns the record of a session as a table, or nil.
local function load_session(id)
  local stored = redis.call('HGETALL', session_key(id))
  local session = nil
  for i = 1, #stored, 2 do
    session = session or {}
    session[stored[i]] = stored[i + 1]
  end
  return session
end
