local function keep_log(id, log)
  write('RPUSH', limits.store .. 'joblog:' .. id, log)
end
