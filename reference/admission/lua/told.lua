-- Once a client has been told of a session or place, a late undo of the attempt that made it would be a lie.
local function told(attemptId)
  write('DEL', key('undo', attemptId))
end
