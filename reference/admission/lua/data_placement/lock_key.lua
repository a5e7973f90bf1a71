local function lock_key(facts)
  return key('ratelimit:lock', facts.userId)
end
