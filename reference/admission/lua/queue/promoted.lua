-- Makes the session before its client knows of it. `unclaimed` lets `status` show it until the first socket
-- attaches; the first heartbeat is the promotion, so an absent client loses the slot after the stale limit.
local function promoted(facts, entry, waited)
  facts.userId = character_of(facts).userId
  facts.attemptId = entry.attemptId or facts.newSessionId
  local session = new_session(facts)
  session.unclaimed = true
  add_session(session, milliseconds(facts))
  return {promoted = true, characterId = session.characterId, userId = session.userId,
    attemptId = session.attemptId, sessionId = session.sessionId, waitMs = waited / 1000}
end
