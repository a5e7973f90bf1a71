local function character_owned(facts)
  if not owns(facts, character_of(facts).userId) then
    return refuse(facts, 'CHARACTER_NOT_OWNED')
  end
end
