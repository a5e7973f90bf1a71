-- Returns the life of a lease in milliseconds. `facts.by` says who takes it, api or worker.
local function lease_life(facts)
  return whole(limits.leaseTtlMs)
end
