-- Returns the record of a job as a table; nil if there is none.
local function load_job(id)
  local words = redis.call('HGETALL', job_key(id))
  if #words == 0 then
    return nil
  end
  local job = {}
  for i = 1, #words, 2 do
    job[words[i]] = words[i + 1]
  end
  return job
end
