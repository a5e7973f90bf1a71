-- Names the sorted set of sessions in grace, by the moment it ends.
local function grace_key()
  return limits.prefix .. 'session:grace'
end
