-- Makes a node the owner of a job: 1 if it is now, 2 if it was already, 0 if another is, -1 if there is no such job,
-- -2 if the job has ended. An assignment of a job without a record makes a short one.
local function claim(facts)
  local job = load_job(facts.jobId)
  if not job and not facts.create then
    return {result = -1}
  end
  job = job or new_job(facts)
  local owner = job.ownerNode or ''
  local answer = {historyId = job.historyId or '', epoch = tonumber(job.ownerEpoch or 0), former = owner}
  if not may_own(job) then
    answer.result = -2
  elseif owner == facts.owner then
    answer.result, answer.former = 2, job.lastOwner or ''
  elseif not may_take(owner, facts.expected) then
    answer.result = 0
  else
    answer.result, answer.epoch = 1, own(facts.jobId, facts.owner, owner)
  end
  return answer
end
