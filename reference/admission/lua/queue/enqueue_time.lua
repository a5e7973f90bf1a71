-- Returns the time of arrival, by the Redis clock, in microseconds.
local function enqueue_time(facts)
  return facts.now
end
