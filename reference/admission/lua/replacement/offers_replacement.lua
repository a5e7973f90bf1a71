-- Tells whether the refusal offers a replacement. A session in grace has its token, and drain admits no
-- replacement, so neither gets an offer.
local function offers_replacement(facts, session)
  return session.instanceId == facts.instanceId and session.state == 'active' and not draining(facts.instanceId)
end
