local function release_lock(facts)
  if not holds_lock(facts) then
    return {released = false}
  end
  write('DEL', facts.lock)
  return {released = true}
end
