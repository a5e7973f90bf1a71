-- Gives a job away to the node that has acknowledged it. As a rule that node has moved the job already.
local function release(facts)
  if not owns(facts.jobId, facts.owner, facts.epoch) then
    return {released = false}
  end
  if facts.newOwner ~= '' then
    own(facts.jobId, facts.newOwner, facts.owner)
  else
    forget(facts.jobId, facts.owner)
    write('HSET', job_key(facts.jobId), 'ownerNode', '', 'ownershipState', '', 'lastOwner', facts.owner)
  end
  return {released = true}
end
