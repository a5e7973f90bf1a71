-- Returns the instances where a character waits and a slot is free.
local function promotable(facts)
  local found = {}
  for _, instanceId in ipairs(redis.call('SMEMBERS', limits.prefix .. 'instances')) do
    if depth_of(instanceId) > 0 and has_room(instanceId) and serving(instanceId) then
      found[#found + 1] = instanceId
    end
  end
  return {instances = found}
end
