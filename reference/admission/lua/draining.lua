local function draining(instanceId)
  return limits.drain or redis.call('EXISTS', drain_key(instanceId)) == 1
end
