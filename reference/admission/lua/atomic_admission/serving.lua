local function serving(instanceId)
  return not limits.maintenance and redis.call('GET', key('instance:status', instanceId)) == 'accepting'
end
