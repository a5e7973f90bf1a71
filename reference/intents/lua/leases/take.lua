-- Writes a lease with its expiry. One that is the owner's already only gets its time back.
local function take(lease, owner, life)
  if redis.call('GET', lease) == owner then
    write('PEXPIRE', lease, life)
  else
    write('SET', lease, owner, 'PX', life)
  end
end
