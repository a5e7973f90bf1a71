-- Counts refused tokens of one kind per user. The node logs when a threshold is reached.
local function watch_suspicious(facts, kind)
  local now_ms = milliseconds(facts)
  local seen = key('suspicious:' .. kind, facts.userId)
  local count = redis.call('ZCOUNT', seen, '(' .. string.format('%.0f', now_ms - limits.suspiciousMs), '+inf') + 1
  write('ZREMRANGEBYSCORE', seen, '-inf', now_ms - limits.suspiciousMs)
  write('ZADD', seen, now_ms, facts.attemptId)
  write('PEXPIRE', seen, limits.suspiciousMs)
  return count
end
