local function set_lock(facts)
  local until_ms = milliseconds(facts) + limits.rateLockMs
  write('SET', lock_key(facts), string.format('%.0f', until_ms), 'PX', limits.rateLockMs)
end
