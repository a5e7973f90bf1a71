local function add_job(facts, due, fields)
  local queue, kind, arguments = fields[3] or 'default', fields[4] or '', fields[5] or '{}'
  write('HSET', job_key(facts.jobId), 'jobId', facts.jobId, 'status', 'Pending', 'queue', queue, 'jobType', kind,
    'arguments', arguments, 'scheduleId', facts.id, 'scheduledAt', whole(due), 'createdAt', whole(milliseconds(facts)))
  write('ZADD', limits.store .. 'jobs:pending', whole(due), facts.jobId)
end
