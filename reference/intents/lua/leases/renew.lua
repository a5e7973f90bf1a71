-- Extends a lease that is still the owner's; never makes one.
local function renew(lease, owner)
  if redis.call('GET', lease) ~= owner then
    return false
  end
  write('PEXPIRE', lease, whole(limits.leaseTtlMs))
  return true
end
