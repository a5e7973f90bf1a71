-- Returns the user's failures in the window, this attempt included if it is one. Only refusals that the client
-- can be blamed for add to them.
local function used_up(facts, reason)
  return limits.counted[reason] and record_failure(facts) or failures(facts)
end
