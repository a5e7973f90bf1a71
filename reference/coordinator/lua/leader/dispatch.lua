-- Dispatches one pending job: the record, the message to the workers and the offer of ownership are one step, so that
-- a leader that dies leaves no job half dispatched. 0 if the job is not pending, -1 if the lock is lost.
local function dispatch(facts)
  if not leads(facts) then
    return {result = -1}
  end
  local key = job_key(facts.jobId)
  if redis.call('HGET', key, 'status') ~= 'Pending' then
    write('ZREM', limits.store .. 'jobs:pending', facts.jobId)
    return {result = 0}
  end
  advance(facts)
  send_work(facts)
  offer(facts)
  return {result = 1}
end
