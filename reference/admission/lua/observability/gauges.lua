local function gauges(facts)
  local found = {}
  for _, instanceId in ipairs(redis.call('SMEMBERS', limits.prefix .. 'instances')) do
    found[#found + 1] = gauges_of(instanceId)
  end
  return {instances = found}
end
