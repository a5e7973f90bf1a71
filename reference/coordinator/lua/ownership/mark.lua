-- Notes the state of the ownership, never that of the job: a running job is running whoever owns it.
local function mark(facts)
  local job = load_job(facts.jobId)
  if not job or not may_own(job) or not owns(facts.jobId, facts.owner, facts.epoch) then
    return {marked = false}
  end
  write('HSET', job_key(facts.jobId), 'ownershipState', facts.state)
  return {marked = true}
end
