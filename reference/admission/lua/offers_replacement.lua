local function offers_replacement(facts, session)
  return session.instanceId == facts.instanceId and session.state == 'active' and not draining(facts.instanceId)
end
