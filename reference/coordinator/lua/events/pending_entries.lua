-- Takes over entries that were given to a former owner, or to this node, and never acknowledged; oldest first.
local function pending_entries(stream, node, count)
  local reply = redis.pcall('XAUTOCLAIM', stream, group_of(node), node, '0', '0-0', 'COUNT', whole(count))
  return reply.err and {} or reply[2]
end
