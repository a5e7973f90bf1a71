local function take(facts)
  if free(facts) then
    write('SADD', limits.key, facts.who)
    return {taken = true}
  end
  return {taken = false}
end
