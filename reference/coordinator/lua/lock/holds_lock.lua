local function holds_lock(facts)
  return redis.call('GET', facts.lock) == facts.token
end
