-- Notes the state of the ownership, never that of the job: a running job is running whoever owns it.
local function mark(facts)
  if not owns(facts.jobId, facts.owner, facts.epoch) or is_terminal(redis.call('HGET', job_key(facts.jobId), 'status')) then
    return {marked = false}
  end
  write('HSET', job_key(facts.jobId), 'ownershipState', facts.state)
  return {marked = true}
end
