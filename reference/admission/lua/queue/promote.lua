-- Finds, removes and admits the head of the line in one run. A head that may not enter is removed, and the next
-- one is tried, so that it does not block the line.
local function promote(facts)
  while may_promote(facts.instanceId) do
    local head = pick_next(facts.instanceId)
    if not head then
      break
    end
    local waited = facts.now - score_of(head, facts.instanceId)
    local entry = entry_of(head) or {characterId = head, instanceId = facts.instanceId}
    facts.characterId, facts.character = head, nil
    remove_entry({characterId = head, instanceId = facts.instanceId})
    if may_be_promoted(facts) then
      return promoted(facts, entry, waited)
    end
  end
  return {promoted = false}
end
