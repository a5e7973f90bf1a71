-- Promotion is an admission and repeats its checks.
local function may_be_promoted(facts)
  local character = character_of(facts)
  return character and not character.suspended and not session_of(facts)
end
