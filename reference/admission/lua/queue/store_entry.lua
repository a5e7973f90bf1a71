local function store_entry(entry, score)
  write('ZADD', queue_key(entry.instanceId), score, entry.characterId)
  write('SET', key('queue:entry', entry.characterId), cjson.encode(entry))
end
