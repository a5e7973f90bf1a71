-- Tells whether a session that Redis has lost may be registered again. An end for lack of heartbeats does not
-- count: during an outage they could not be written. An instance that Redis has lost too has no known capacity.
local function may_come_back(session, ended)
  if ended and ended.reason ~= 'network' then
    return false
  end
  if redis.call('GET', marker_key(session.characterId, session.instanceId)) then
    return false
  end
  local registered = redis.call('GET', key('instance:status', session.instanceId))
  return not registered or has_room(session.instanceId)
end
