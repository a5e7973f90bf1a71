-- Keeps the value of fields that are not given. A new instance starts with the defaults.
local function register_instance(facts)
  local state_key = key('instance:status', facts.instanceId)
  local capacity = facts.capacity or capacity_of(facts.instanceId)
  local state = facts.state or redis.call('GET', state_key) or 'accepting'
  write('SET', key('instance:capacity', facts.instanceId), capacity)
  write('SET', state_key, state)
  write('SADD', limits.prefix .. 'instances', facts.instanceId)
  return {capacity = capacity, state = state}
end
