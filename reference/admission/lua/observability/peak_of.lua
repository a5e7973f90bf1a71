-- Returns the greatest length that the queue has had.
local function peak_of(instanceId)
  return tonumber(redis.call('HGET', key('queue:stats', instanceId), 'peak') or 0)
end
