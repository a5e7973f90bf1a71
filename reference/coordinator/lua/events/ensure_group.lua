-- Makes the group of a job's channel from its first entry on: events that came before anybody subscribed count.
local function ensure_group(stream)
  redis.pcall('XGROUP', 'CREATE', stream, limits.group, '0', 'MKSTREAM')
end
