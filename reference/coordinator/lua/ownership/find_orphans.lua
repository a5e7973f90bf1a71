-- Returns the jobs that need another owner. `facts.dead` has the owners that are dead.
local function find_orphans(facts)
  local dead, orphans = {}, {}
  for _, owner in ipairs(facts.dead) do
    dead[owner] = true
  end
  for _, owner in ipairs(redis.call('SMEMBERS', limits.store .. 'owners')) do
    for _, id in ipairs(redis.call('SMEMBERS', owner_key(owner))) do
      local job = load_job(id)
      if job and is_orphan(job, dead[owner]) then
        orphans[#orphans + 1] = {jobId = id, historyId = job.historyId or '', owner = owner}
      end
    end
  end
  return {orphans = orphans}
end
