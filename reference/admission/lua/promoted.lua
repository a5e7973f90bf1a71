-- The session exists before its client knows. It is shown by status until the first socket attaches.
local function promoted(facts, entry, waited)
  facts.userId = character_of(facts).userId
  facts.attemptId = entry.attemptId or facts.newSessionId
  local session = new_session(facts)
  session.unclaimed = true
  add_session(session, milliseconds(facts))
  return {promoted = true, characterId = session.characterId, userId = session.userId,
    attemptId = session.attemptId, sessionId = session.sessionId, waitMs = waited / 1000}
end
