local function expired_graces(now_ms)
  return redis.call('ZRANGEBYSCORE', limits.prefix .. 'session:grace', '-inf', now_ms)
end
