-- Raises the peak at each enqueue, so that a short spike between two scrapes is seen.
local function note_peak(instanceId, depth)
  if depth > peak_of(instanceId) then
    write('HSET', key('queue:stats', instanceId), 'peak', depth)
  end
end
