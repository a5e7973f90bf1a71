-- Adds one failure and returns how many there are now. The one that reaches the limit sets the lock.
local function record_failure(facts)
  local count = failures(facts) + 1
  add_failure(facts)
  if locks(count) then
    set_lock(facts)
  end
  return count
end
