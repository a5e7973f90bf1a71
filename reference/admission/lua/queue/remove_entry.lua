local function remove_entry(entry)
  write('ZREM', queue_key(entry.instanceId), entry.characterId)
  write('DEL', key('queue:entry', entry.characterId))
end
