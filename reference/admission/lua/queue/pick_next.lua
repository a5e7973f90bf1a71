-- Returns the character that has waited longest, or nil.
local function pick_next(instanceId)
  return redis.call('ZRANGE', queue_key(instanceId), 0, 0)[1]
end
