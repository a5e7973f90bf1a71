-- Sessions that hold a slot: active and in grace.
local function active_count(instanceId)
  return redis.call('SCARD', slots_key(instanceId))
end
