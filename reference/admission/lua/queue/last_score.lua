local function last_score(instanceId)
  return tonumber(redis.call('ZREVRANGE', queue_key(instanceId), 0, 0, 'WITHSCORES')[2] or 0)
end
