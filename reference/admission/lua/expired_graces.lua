local function expired_graces(now_ms)
  return redis.call('ZRANGEBYSCORE', grace_key(), '-inf', now_ms)
end
