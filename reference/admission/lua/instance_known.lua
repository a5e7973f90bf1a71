local function instance_known(facts)
  if not redis.call('GET', key('instance:status', facts.instanceId)) then
    return refuse(facts, 'INVALID_INSTANCE')
  end
end
