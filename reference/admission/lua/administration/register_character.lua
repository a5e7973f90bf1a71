local function register_character(facts)
  local name = key('character', facts.characterId)
  write('HSET', name, 'userId', facts.userId, 'suspended', facts.suspended and '1' or '0')
  for _, detail in ipairs({'note', 'moderatorId', 'internalReason'}) do
    if facts[detail] then
      write('HSET', name, detail, facts[detail])
    end
  end
  return {}
end
