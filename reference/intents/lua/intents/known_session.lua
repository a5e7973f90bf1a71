-- Returns the live session that one of the candidate keys maps to: current secret first, then the previous one (3.3).
local function known_session(facts)
  for _, key in ipairs(facts.candidates) do
    local id = redis.call('GET', mapping_key(key))
    local session = id and load_session(id)
    if session and is_live(session, facts) then
      return session
    end
  end
end
