-- Tells whether the offer was made to this user for this character, this instance and the session that runs now.
local function offer_fits(facts, offer, session)
  return offer.characterId == facts.characterId and offer.userId == facts.userId
    and offer.instanceId == facts.instanceId and offer.existingSessionId == session.sessionId
end
