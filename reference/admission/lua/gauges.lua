local function gauges(facts)
  local found = {}
  for _, instanceId in ipairs(redis.call('SMEMBERS', limits.prefix .. 'instances')) do
    found[#found + 1] = {instanceId = instanceId, active = active_count(instanceId), depth = depth_of(instanceId),
      peak = tonumber(redis.call('HGET', key('queue:stats', instanceId), 'peak') or 0)}
  end
  return {instances = found}
end
