local function score_of(characterId, instanceId)
  return redis.call('ZSCORE', queue_key(instanceId), characterId)
end
