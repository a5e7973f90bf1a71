-- Writes a job down as a node's own, under a new epoch, which ends the rights of every owner before.
local function own(id, node, former)
  if former ~= '' then
    forget(id, former)
    write('HSET', job_key(id), 'lastOwner', former)
  end
  write('SADD', owner_key(node), id)
  write('SADD', limits.store .. 'owners', node)
  write('HSET', job_key(id), 'ownerNode', node, 'ownershipState', 'Owned')
  return write('HINCRBY', job_key(id), 'ownerEpoch', 1)
end
