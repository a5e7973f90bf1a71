-- Returns the number of the user's failures that are still inside the rolling window.
local function failures(facts)
  local edge = milliseconds(facts) - limits.rateWindowMs
  return redis.call('ZCOUNT', window_key(facts), '(' .. string.format('%.0f', edge), '+inf')
end
