-- Answers whether the owner's character is waiting, freshly promoted, or neither. Reads only.
local function status(facts)
  local character = character_of(facts)
  if not character or not owns(facts, character.userId) then
    return {state = 'absent'}
  end
  local depth = depth_of(facts.instanceId)
  local position = position_of(facts.characterId, facts.instanceId)
  if position then
    return {state = 'queued', position = position, depth = depth}
  end
  local session = session_of(facts)
  if session and session.unclaimed and session.instanceId == facts.instanceId then
    return {state = 'admitted', position = 0, depth = depth, sessionId = session.sessionId,
      reconnectionToken = session.reconnectionToken}
  end
  return {state = 'absent'}
end
