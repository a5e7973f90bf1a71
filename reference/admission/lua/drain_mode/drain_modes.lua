local function drain_modes(facts)
  local found = {}
  for _, instanceId in ipairs(redis.call('SMEMBERS', limits.prefix .. 'instances')) do
    local left = redis.call('PTTL', drain_key(instanceId))
    if left ~= -2 then
      found[#found + 1] = {instanceId = instanceId, ttlMs = left >= 0 and left or nil}
    end
  end
  return {instances = found}
end
