-- Tells whether a job is still the caller's, and under the epoch in which the caller got it.
local function owns(id, owner, epoch)
  local record = redis.call('HMGET', job_key(id), 'ownerNode', 'ownerEpoch')
  return has_owner(id, record[1], owner) and same_epoch(record[2], epoch)
end
