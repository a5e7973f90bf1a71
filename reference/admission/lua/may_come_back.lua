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
