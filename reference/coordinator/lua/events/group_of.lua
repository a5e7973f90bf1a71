-- Returns the group of a job's channels. All owners that the job has are consumers of one group.
local function group_of(node)
  return limits.group
end
