-- Tells whether more than two heartbeat intervals have passed in silence.
local function is_stale(session, now_ms)
  local last = tonumber(redis.call('GET', beat_key(session)) or 0)
  return now_ms - last > limits.staleMs
end
