-- Returns the Redis server time in microseconds, the one clock of all processes.
local function now()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end
