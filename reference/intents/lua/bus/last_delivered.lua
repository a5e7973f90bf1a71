-- Returns the id of the last event that was handed to the group.
local function last_delivered()
  for _, group in ipairs(redis.call('XINFO', 'GROUPS', limits.bus)) do
    local told = {}
    for i = 1, #group, 2 do
      told[group[i]] = group[i + 1]
    end
    if told.name == limits.group then
      return told['last-delivered-id']
    end
  end
  return '0'
end
