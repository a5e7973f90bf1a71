local function offer_fits(facts, offer, session)
  return offer.characterId == facts.characterId and offer.userId == facts.userId
    and offer.instanceId == facts.instanceId and offer.existingSessionId == session.sessionId
end
