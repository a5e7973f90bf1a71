-- Refuses a locked user. It comes first, so nothing else is judged, recorded or started under lock.
local function rate_lock(facts)
  local lock_ms = lock_left(facts)
  if not lock_ms then
    return nil
  end
  return {outcome = 'failed', reason = 'RATE_LIMITED', remaining = 0, lockMs = lock_ms,
    resetMs = milliseconds(facts) + lock_ms}
end
