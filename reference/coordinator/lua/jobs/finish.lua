-- Takes a job that has ended off the lists of what is under way. Its record keeps the last owner, who may still read
-- late logs.
local function finish(id, owner)
  write('SREM', limits.store .. 'jobs:active', id)
  forget(id, owner)
  write('HSET', job_key(id), 'ownershipState', '')
end
