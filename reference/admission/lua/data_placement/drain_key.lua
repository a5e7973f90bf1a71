local function drain_key(instanceId)
  return key('session:drain', instanceId)
end
