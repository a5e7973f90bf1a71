-- Applies status reports in their order, each with its acknowledgement in the same step: it takes effect once. A report
-- that does not count is acknowledged only.
local function apply_statuses(facts)
  if not owns(facts.jobId, facts.owner, facts.epoch) then
    return {owned = false}
  end
  local record = redis.call('HMGET', job_key(facts.jobId), 'status', 'lastStatusId')
  local status, last = record[1], record[2]
  for _, entry in ipairs(facts.entries) do
    if acknowledge(facts, entry.id) and may_apply(entry, status, last) then
      set_status(facts, entry)
      status, last = entry.status, entry.id
    end
  end
  if is_terminal(status) then
    finish(facts.jobId, facts.owner)
  end
  return {owned = true, status = status, finished = is_terminal(status)}
end
