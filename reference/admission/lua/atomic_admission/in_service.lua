local function in_service(facts)
  if not serving(facts.instanceId) then
    return refuse(facts, 'MAINTENANCE')
  end
end
