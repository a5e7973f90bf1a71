-- Puts one message on a queue. Queues are never trimmed: an entry that nobody has read yet would be lost.
local function publish(stream, payload)
  write('XADD', stream, '*', 'data', payload)
end
