-- Arrival in line, by the Redis clock and in microseconds.
local function enqueue_time(facts)
  return facts.now
end
