-- Adds one failure; the one that reaches the limit sets the lock.
local function record_failure(facts)
  local now_ms = milliseconds(facts)
  local window = window_key(facts)
  local count = failures(facts) + 1
  write('ZREMRANGEBYSCORE', window, '-inf', now_ms - limits.rateWindowMs)
  write('ZADD', window, now_ms, failure_member(facts))
  write('PEXPIRE', window, limits.rateWindowMs)
  if count >= limits.rateFailures then
    set_lock(facts)
  end
  return count
end
