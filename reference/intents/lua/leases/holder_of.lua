local function holder_of(lease)
  return redis.call('GET', lease)
end
