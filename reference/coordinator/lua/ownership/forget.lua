-- Takes a job off its owner's list. An owner without jobs is no owner any more.
local function forget(id, owner)
  write('SREM', owner_key(owner), id)
  if redis.call('EXISTS', owner_key(owner)) == 0 then
    write('SREM', limits.store .. 'owners', owner)
  end
end
