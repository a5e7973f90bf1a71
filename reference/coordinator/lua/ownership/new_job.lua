-- Makes the record of a job that somebody else has dispatched.
local function new_job(facts)
  local at = whole(milliseconds(facts))
  write('HSET', job_key(facts.jobId), 'jobId', facts.jobId, 'status', 'Dispatched', 'historyId', facts.historyId,
    'jobType', facts.jobType, 'queue', facts.queue, 'createdAt', at, 'dispatchedAt', at)
  write('SADD', limits.store .. 'jobs:active', facts.jobId)
  return {status = 'Dispatched', historyId = facts.historyId}
end
