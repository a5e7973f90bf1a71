local function slots_key(instanceId)
  return key('session:instance', instanceId)
end
