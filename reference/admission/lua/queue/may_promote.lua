local function may_promote(instanceId)
  return has_room(instanceId) and serving(instanceId)
end
