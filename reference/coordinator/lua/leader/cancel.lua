-- Carries out the wish to cancel a job: a pending one is cancelled here, for one that was dispatched the workers are told.
local function cancel(facts)
  if not leads(facts) then
    return {result = -1}
  end
  write('SREM', limits.store .. 'jobs:cancel', facts.jobId)
  local status = redis.call('HGET', job_key(facts.jobId), 'status')
  if not status or is_terminal(status) then
    return {result = 0}
  end
  if status == 'Pending' then
    write('ZREM', limits.store .. 'jobs:pending', facts.jobId)
    write('HSET', job_key(facts.jobId), 'status', 'Cancelled', 'completedAt', facts.stamp)
    return {result = 2}
  end
  tell_workers(facts)
  return {result = 1}
end
