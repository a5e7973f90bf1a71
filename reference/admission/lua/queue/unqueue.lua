-- Removes the owner's character from the queue of this instance.
local function unqueue(facts)
  local character = character_of(facts)
  if character and not owns(facts, character.userId) then
    return {foreign = true}
  end
  local entry = entry_of(facts.characterId)
  if not entry or entry.instanceId ~= facts.instanceId then
    return {removed = false}
  end
  remove_entry(entry)
  return {removed = true}
end
