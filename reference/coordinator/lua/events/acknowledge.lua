-- Takes an entry off the queue, and tells whether it was still there: what is not has taken effect before.
local function acknowledge(stream, id)
  return write('XACK', stream, limits.group, id) == 1
end
