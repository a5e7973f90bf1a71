local function token_fits(facts, record)
  return record.characterId == facts.characterId
    and record.instanceId == facts.instanceId
    and record.userId == facts.userId
end
