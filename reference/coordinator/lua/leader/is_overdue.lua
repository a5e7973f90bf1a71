-- Tells whether a job has been running for longer than its own timeout.
local function is_overdue(job, at)
  local timeout, started = tonumber(job.timeoutMs), tonumber(job.startedAt)
  return job.status == 'Running' and timeout and timeout > 0 and started and started + timeout < at
end
