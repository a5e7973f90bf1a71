local function due_schedules(facts)
  local key = limits.store .. 'schedules'
  return {ids = redis.call('ZRANGEBYSCORE', key, '-inf', whole(milliseconds(facts)), 'LIMIT', 0, facts.count)}
end
