-- Returns a score strictly above that of everyone already waiting. Equal scores would be ordered by character
-- id, and after a step back of the clock the newcomer would overtake.
local function enqueue_score(last, now)
  return math.max(last + 1, now)
end
