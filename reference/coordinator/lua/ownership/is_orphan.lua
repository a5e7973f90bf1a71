-- Tells whether a job of this owner needs another one: it is unfinished, and its owner is dead or has given it up.
local function is_orphan(job, dead)
  return not is_terminal(job.status) and (dead or job.ownershipState == 'ORPHAN_PENDING')
end
