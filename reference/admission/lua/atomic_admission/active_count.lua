-- Returns how many sessions hold a slot: those that are active and those in grace.
local function active_count(instanceId)
  return redis.call('SCARD', slots_key(instanceId))
end
