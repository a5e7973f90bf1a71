-- Tells whether a job can have an owner at all: one that has ended needs none.
local function may_own(job)
  return not is_terminal(job.status)
end
