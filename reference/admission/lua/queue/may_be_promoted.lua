-- Repeats the checks of an admission, because the character may have changed while it waited.
local function may_be_promoted(facts)
  local character = character_of(facts)
  return character and not character.suspended and not session_of(facts)
end
