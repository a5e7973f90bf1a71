-- Reads the channels of jobs that are still the caller's, and returns `false` for one that is not. Reading and the look
-- at the owner are one step: once a job has another owner, its former one is given no entry any more, and what it was
-- given before is pending, for the new owner to find.
local function read_events(facts)
  local found = {}
  for i, job in ipairs(facts.jobs) do
    found[i] = false
    if owns(job.id, facts.owner, job.epoch) then
      local entries = facts.pending and pending_entries or new_entries
      local statuses = job.status ~= '' and entries(job.status, facts.owner, facts.count) or {}
      local logs = job.logs ~= '' and entries(job.logs, facts.owner, facts.count) or {}
      found[i] = {messages(statuses), messages(logs)}
    end
  end
  return {found = found}
end
