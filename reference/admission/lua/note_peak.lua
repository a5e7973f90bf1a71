local function note_peak(instanceId, depth)
  if depth > peak_of(instanceId) then
    write('HSET', key('queue:stats', instanceId), 'peak', depth)
  end
end
