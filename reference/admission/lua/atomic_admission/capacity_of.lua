local function capacity_of(instanceId)
  return tonumber(redis.call('GET', key('instance:capacity', instanceId)) or limits.defaultCapacity)
end
