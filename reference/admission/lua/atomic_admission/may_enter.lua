-- Tells whether a newcomer is admitted at once. A free slot is not enough: nobody overtakes those who wait.
local function may_enter(facts)
  return has_room(facts.instanceId) and depth_of(facts.instanceId) == 0
end
