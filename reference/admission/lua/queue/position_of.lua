-- Returns the rank in the queue, counted from 0, or nil. The next to be promoted has 0.
local function position_of(characterId, instanceId)
  return redis.call('ZRANK', queue_key(instanceId), characterId)
end
