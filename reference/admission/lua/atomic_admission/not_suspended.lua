local function not_suspended(facts)
  if character_of(facts).suspended then
    return refuse(facts, 'CHARACTER_SUSPENDED')
  end
end
