local function offer_replacement(facts, session)
  local record = {characterId = facts.characterId, userId = facts.userId, instanceId = facts.instanceId,
    existingSessionId = session.sessionId}
  write('SET', key('replacement', facts.newReplacementToken), cjson.encode(record), 'PX', limits.replacementMs)
  return facts.newReplacementToken
end
