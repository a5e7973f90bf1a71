local function expired_graces(facts)
  return redis.call('ZRANGEBYSCORE', grace_key(), '-inf', milliseconds(facts))
end
