-- Strictly above everyone already waiting: equal scores would be ordered by character id, and a clock that
-- stepped back would let the newcomer overtake.
local function enqueue_score(last, now)
  return math.max(last + 1, now)
end
