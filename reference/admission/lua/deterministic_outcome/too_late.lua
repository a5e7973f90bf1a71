-- Tells whether the attempt has been answered with timeout by now. Such a run must not change anything.
local function too_late(facts)
  return facts.now / 1000 > facts.deadlineMs
end
