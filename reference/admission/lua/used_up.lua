-- Failures of the user in the window, with this attempt if it is one; nothing but such refusals adds to them.
local function used_up(facts, reason)
  return limits.counted[reason] and record_failure(facts) or failures(facts)
end
