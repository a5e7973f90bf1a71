-- Returns the unfinished jobs that the store has for a node. A node that starts takes them up under a new epoch, which
-- ends the rights of an earlier process of its name.
local function resume(facts)
  local jobs = {}
  for _, id in ipairs(redis.call('SMEMBERS', owner_key(facts.owner))) do
    local job = load_job(id)
    if job and has_owner(id, job.ownerNode, facts.owner) and counts(job) then
      local epoch = facts.anew and own(id, facts.owner, '') or tonumber(job.ownerEpoch or 0)
      jobs[#jobs + 1] = {jobId = id, historyId = job.historyId or '', epoch = epoch}
    end
  end
  return {jobs = jobs}
end
