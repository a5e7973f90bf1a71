local function has_room(instanceId)
  return active_count(instanceId) < capacity_of(instanceId)
end
