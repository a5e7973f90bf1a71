-- Makes the job of one due time of a schedule, and moves the schedule to its next. A due time that passed while nobody
-- led is made up for. A schedule that is disabled, or cannot recur, is taken off the list.
local function fire_schedule(facts)
  if not leads(facts) then
    return {result = -1}
  end
  local schedules, key = limits.store .. 'schedules', limits.store .. 'schedule:' .. facts.id
  local due = tonumber(redis.call('ZSCORE', schedules, facts.id))
  local fields = redis.call('HMGET', key, 'intervalMs', 'isEnabled', 'queue', 'jobType', 'arguments')
  local interval = tonumber(fields[1])
  if not due or due > milliseconds(facts) then
    return {result = 0}
  end
  if not interval or interval <= 0 or fields[2] == 'false' or fields[2] == '0' then
    write('ZREM', schedules, facts.id)
    return {result = 0}
  end
  add_job(facts, due, fields)
  local next_due = next_run(due, interval, milliseconds(facts))
  write('HSET', key, 'lastRunTime', whole(due), 'nextRunTime', whole(next_due))
  write('ZADD', schedules, whole(next_due), facts.id)
  return {result = 1}
end
