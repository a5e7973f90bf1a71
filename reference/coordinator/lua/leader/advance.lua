-- Takes a job off the list of pending ones: the next scan does not see it again.
local function advance(facts)
  local key = job_key(facts.jobId)
  write('HSET', key, 'status', 'Dispatched', 'historyId', facts.historyId, 'dispatchedAt', whole(milliseconds(facts)))
  write('ZREM', limits.store .. 'jobs:pending', facts.jobId)
  write('SADD', limits.store .. 'jobs:active', facts.jobId)
end
