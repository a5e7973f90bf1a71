-- What the answer tells about the limiter: failures left, and when the count changes by itself.
local function allowance(facts, verdict, count)
  local now_ms = milliseconds(facts)
  local edge = '(' .. string.format('%.0f', now_ms - limits.rateWindowMs)
  local oldest = redis.call('ZRANGEBYSCORE', window_key(facts), edge, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
  verdict.remaining = math.max(limits.rateFailures - count, 0)
  verdict.resetMs = (oldest or now_ms) + limits.rateWindowMs
  return verdict
end
