-- Removes the character from the queue where it waits, since it waits on one instance at a time. Returns what
-- `undo` has to put back.
local function leave_other_queue(facts)
  local entry = entry_of(facts.characterId)
  if not entry then
    return nil
  end
  local score = score_of(entry.characterId, entry.instanceId)
  remove_entry(entry)
  return score and {entry = entry, score = score} or nil
end
