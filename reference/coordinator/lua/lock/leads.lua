-- Tells whether the caller still holds the lock: every leader action is fenced here, whatever the caller believes.
local function leads(facts)
  return holds_lock(facts)
end
