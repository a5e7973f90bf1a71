local function drain(facts)
  if draining(facts.instanceId) then
    return refuse(facts, 'DRAIN_MODE')
  end
end
