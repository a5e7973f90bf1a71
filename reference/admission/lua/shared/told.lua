-- Deletes the journal of the attempt that made a session or place, once a client has been told of it: from then
-- on an undo would take away what the client relies on.
local function told(attemptId)
  write('DEL', key('undo', attemptId))
end
