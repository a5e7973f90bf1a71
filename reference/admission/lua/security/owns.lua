-- Tells whether the caller is the owner.
local function owns(facts, userId)
  return facts.userId == userId
end
