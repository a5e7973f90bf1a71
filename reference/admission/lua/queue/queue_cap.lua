-- Comes after `free_slot` and before `enqueue`, so only a newcomer that would have to wait is refused.
local function queue_cap(facts)
  if depth_of(facts.instanceId) >= limits.queueCap then
    return refuse(facts, 'QUEUE_FULL')
  end
end
