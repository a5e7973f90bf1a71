local function rate_lock(facts)
  local left = redis.call('PTTL', lock_key(facts))
  if left == -2 then
    return nil
  end
  local lock_ms = left >= 0 and left or limits.rateLockMs
  return {outcome = 'failed', reason = 'RATE_LIMITED', remaining = 0, lockMs = lock_ms,
    resetMs = milliseconds(facts) + lock_ms}
end
