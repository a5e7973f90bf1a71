local function queue_key(instanceId)
  return key('queue:pending', instanceId)
end
