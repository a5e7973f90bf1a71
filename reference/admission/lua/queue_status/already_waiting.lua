-- Comes before drain and cap, so that a character that waits already hears its place in any case.
local function already_waiting(facts)
  local entry = entry_of(facts.characterId)
  local here = entry and entry.instanceId == facts.instanceId
  local position = here and position_of(facts.characterId, facts.instanceId)
  if not position then
    return nil
  end
  told(entry.attemptId)
  return queued(facts, position, depth_of(facts.instanceId))
end
