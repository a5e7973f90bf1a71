-- Ends a session for good: its leases and its mapping are gone at the moment at which it shows as terminal. Only what
-- the session itself owns is released; one that has ended before keeps its state and reason.
local function end_session(facts)
  local released = {}
  for _, lease in ipairs(facts.leases) do
    if release(lease, facts.owner) then
      released[#released + 1] = lease
    end
  end
  local answer = move_session(facts)
  answer.released = released
  return answer
end
