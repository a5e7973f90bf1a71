local function character_given(facts)
  if facts.characterId == '' then
    return refuse(facts, 'NO_ACTIVE_CHARACTER')
  end
end
