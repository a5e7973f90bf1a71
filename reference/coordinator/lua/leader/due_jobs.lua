-- Returns pending jobs whose time has come, those of the highest priority first.
local function due_jobs(facts)
  local jobs = {}
  local latest = latest_due(milliseconds(facts))
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', limits.store .. 'jobs:pending', '-inf', latest, 'LIMIT', 0, facts.count)) do
    local job = load_job(id) or {}
    job.jobId = id
    jobs[#jobs + 1] = job
  end
  table.sort(jobs, comes_first)
  return {jobs = jobs}
end
