local function owns(facts, userId)
  return facts.userId == userId
end
