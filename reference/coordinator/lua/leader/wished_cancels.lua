local function wished_cancels(facts)
  return {ids = redis.call('SRANDMEMBER', limits.store .. 'jobs:cancel', facts.count)}
end
