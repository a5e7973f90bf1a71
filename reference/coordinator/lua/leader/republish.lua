-- Publishes the handoff of an orphan, unless it has found another owner since the query.
local function republish(facts)
  if not leads(facts) then
    return {result = -1}
  end
  if redis.call('HGET', job_key(facts.jobId), 'ownerNode') ~= facts.owner then
    return {result = 0}
  end
  publish(facts.stream, facts.payload)
  return {result = 1}
end
