-- Tells whether the instance is in drain mode, by its flag or because this node was started with drain mode on.
local function draining(instanceId)
  return limits.drain or redis.call('EXISTS', drain_key(instanceId)) == 1
end
