-- Compares the owner that the record has with the one that the claim expects: a copy of a handoff, or of an
-- assignment, finds another owner and changes nothing.
local function may_take(owner, expected)
  return owner == expected
end
