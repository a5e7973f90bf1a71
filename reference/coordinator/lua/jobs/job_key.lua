local function job_key(id)
  return limits.store .. 'job:' .. id
end
