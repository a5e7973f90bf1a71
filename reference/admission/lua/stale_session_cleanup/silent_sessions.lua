-- Returns the sessions of all instances without a heartbeat inside the stale limit, whichever node admitted them.
local function silent_sessions(facts)
  local found = {}
  for _, instanceId in ipairs(redis.call('SMEMBERS', limits.prefix .. 'instances')) do
    for _, sessionId in ipairs(redis.call('SMEMBERS', slots_key(instanceId))) do
      if is_stale({instanceId = instanceId, sessionId = sessionId}, milliseconds(facts)) then
        found[#found + 1] = sessionId
      end
    end
  end
  return found
end
