local function character_known(facts)
  if not character_of(facts) then
    return refuse(facts, 'CHARACTER_NOT_FOUND')
  end
end
