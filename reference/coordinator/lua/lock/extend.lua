local function extend(facts)
  return write('PEXPIRE', facts.lock, whole(facts.leaseMs)) == 1
end
