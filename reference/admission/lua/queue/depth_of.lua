local function depth_of(instanceId)
  return redis.call('ZCARD', queue_key(instanceId))
end
