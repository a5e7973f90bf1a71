-- The attempt has been answered with timeout by now, so this run must not change anything.
local function too_late(facts)
  return facts.now / 1000 > facts.deadlineMs
end
