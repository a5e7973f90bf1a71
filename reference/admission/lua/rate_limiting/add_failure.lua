-- Adds one member per failure. The record expires when its youngest failure no longer counts.
local function add_failure(facts)
  local now_ms = milliseconds(facts)
  local window = window_key(facts)
  write('ZREMRANGEBYSCORE', window, '-inf', now_ms - limits.rateWindowMs)
  write('ZADD', window, now_ms, failure_member(facts))
  write('PEXPIRE', window, limits.rateWindowMs)
end
