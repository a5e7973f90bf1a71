-- Rank counted from 0: the next to be promoted has 0.
local function position_of(characterId, instanceId)
  return redis.call('ZRANK', queue_key(instanceId), characterId)
end
