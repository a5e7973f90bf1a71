-- Deletes a lease that is the owner's; another's is left alone.
local function release(lease, owner)
  if redis.call('GET', lease) ~= owner then
    return false
  end
  write('DEL', lease)
  return true
end
