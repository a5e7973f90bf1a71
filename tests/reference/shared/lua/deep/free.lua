local function free(facts)
  return redis.call('SCARD', limits.key) < limits.most
end
