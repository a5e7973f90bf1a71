-- Tells whether a job counts as a load of its owner.
local function counts(job)
  return not is_terminal(job.status)
end
