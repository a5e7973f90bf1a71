-- Sets the lease back to its full length, if the lock still carries the caller's token.
local function renew_lock(facts)
  if not holds_lock(facts) then
    return {renewed = false}
  end
  return {renewed = extend(facts)}
end
