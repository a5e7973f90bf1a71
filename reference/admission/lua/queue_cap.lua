local function queue_cap(facts)
  if depth_of(facts.instanceId) >= limits.queueCap then
    return refuse(facts, 'QUEUE_FULL')
  end
end
