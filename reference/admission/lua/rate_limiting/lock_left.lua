-- Returns the milliseconds until the lock lifts, or nil when there is none.
local function lock_left(facts)
  local left = redis.call('PTTL', lock_key(facts))
  if left == -2 then
    return nil
  end
  return left >= 0 and left or limits.rateLockMs
end
