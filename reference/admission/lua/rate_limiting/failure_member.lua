-- Returns a name that no other failure has, so that several in one millisecond count separately.
local function failure_member(facts)
  return facts.attemptId
end
