-- Applies status reports in their order, each with its acknowledgement in the same step: it takes effect once. After
-- the report that ends the job others are acknowledged only, and so is one that is older than the last.
local function apply_statuses(facts)
  if not owns(facts.jobId, facts.owner, facts.epoch) then
    return {owned = false}
  end
  local record = redis.call('HMGET', job_key(facts.jobId), 'status', 'lastStatusId')
  local status, last, applied = record[1], record[2], 0
  for _, entry in ipairs(facts.entries) do
    local fresh = acknowledge(facts.stream, entry.id)
    if fresh and entry.status ~= '' and not is_terminal(status) and is_newer(entry.id, last) then
      set_status(facts, entry)
      status, last, applied = entry.status, entry.id, applied + 1
    end
  end
  if is_terminal(status) then
    finish(facts.jobId, facts.owner)
  end
  return {owned = true, applied = applied, status = status, finished = is_terminal(status)}
end
