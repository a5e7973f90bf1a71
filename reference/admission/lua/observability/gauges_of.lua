local function gauges_of(instanceId)
  return {instanceId = instanceId, active = active_count(instanceId), depth = depth_of(instanceId),
    peak = peak_of(instanceId)}
end
