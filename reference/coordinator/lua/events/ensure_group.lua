-- Makes the group of a job's channel from its first entry on: events that came before anybody subscribed count.
local function ensure_group(stream, node)
  redis.pcall('XGROUP', 'CREATE', stream, group_of(node), '0', 'MKSTREAM')
end
