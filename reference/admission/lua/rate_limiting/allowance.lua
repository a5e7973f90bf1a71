-- Adds to a verdict what the answer says about the limiter: how many failures are left, and when the oldest
-- one leaves the window.
local function allowance(facts, verdict, count)
  local now_ms = milliseconds(facts)
  local edge = '(' .. string.format('%.0f', now_ms - limits.rateWindowMs)
  local oldest = redis.call('ZRANGEBYSCORE', window_key(facts), edge, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
  verdict.remaining = math.max(limits.rateFailures - count, 0)
  verdict.resetMs = (oldest or now_ms) + limits.rateWindowMs
  return verdict
end
