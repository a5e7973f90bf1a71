-- Returns the session of a character, active or in grace, or nil.
local function session_of(facts)
  local sessionId = redis.call('GET', marker_key(facts.characterId, facts.instanceId))
  return sessionId and session_by_id(sessionId) or nil
end
