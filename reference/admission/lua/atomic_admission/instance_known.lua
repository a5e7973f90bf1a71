-- Refuses an instance that was never registered: registering is what stores a status.
local function instance_known(facts)
  if not redis.call('GET', key('instance:status', facts.instanceId)) then
    return refuse(facts, 'INVALID_INSTANCE')
  end
end
