-- Under lock nothing else is judged, recorded or started.
local function rate_lock(facts)
  local lock_ms = lock_left(facts)
  if not lock_ms then
    return nil
  end
  return {outcome = 'failed', reason = 'RATE_LIMITED', remaining = 0, lockMs = lock_ms,
    resetMs = milliseconds(facts) + lock_ms}
end
