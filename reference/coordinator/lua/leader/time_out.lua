-- Marks the running jobs that are past their own timeout.
local function time_out(facts)
  if not leads(facts) then
    return {result = -1, jobs = {}}
  end
  local timed_out = {}
  for _, id in ipairs(redis.call('SMEMBERS', limits.store .. 'jobs:active')) do
    local job = load_job(id)
    if job and is_overdue(job, milliseconds(facts)) then
      write('HSET', job_key(id), 'status', 'TimedOut', 'completedAt', facts.stamp)
      finish(id, job.ownerNode or '')
      timed_out[#timed_out + 1] = id
    end
  end
  return {result = 1, jobs = timed_out}
end
