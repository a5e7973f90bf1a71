-- Reads entries that nobody was given yet. A group that somebody has removed is made again.
local function new_entries(stream, node, count)
  local command = {'XREADGROUP', 'GROUP', group_of(node), node, 'COUNT', whole(count), 'STREAMS', stream, '>'}
  local reply = redis.pcall(unpack(command))
  if type(reply) == 'table' and reply.err then
    ensure_group(stream, node)
    reply = redis.call(unpack(command))
  end
  return reply and reply[1] and reply[1][2] or {}
end
