-- Writes one status report into the record.
local function set_status(facts, entry)
  local key, at = job_key(facts.jobId), string.match(entry.id, '%d+')
  write('HSET', key, 'status', entry.status, 'lastStatusId', entry.id)
  if entry.status == 'Running' then
    write('HSETNX', key, 'startedAt', at)
  end
  for _, name in ipairs({'result', 'error', 'completedAt'}) do
    if entry[name] ~= '' then
      write('HSET', key, name, entry[name])
    end
  end
  if is_terminal(entry.status) and entry.completedAt == '' then
    write('HSET', key, 'completedAt', facts.at)
  end
  local event = {entryId = entry.id, by = facts.owner, status = entry.status, at = facts.at}
  write('RPUSH', limits.store .. 'jobevents:' .. facts.jobId, cjson.encode(event))
end
