local function note_peak(instanceId, depth)
  local stats = key('queue:stats', instanceId)
  if depth > tonumber(redis.call('HGET', stats, 'peak') or 0) then
    write('HSET', stats, 'peak', depth)
  end
end
