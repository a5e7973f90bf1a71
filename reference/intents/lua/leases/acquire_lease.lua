-- Acquires a lease for its owner: 1 if it was free, 2 if it is the owner's already (its expiry is set back to the full
-- TTL), 0 if another holds it, and then nothing has changed.
local function acquire_lease(facts)
  local holder = holder_of(facts.lease)
  if holder and not is_mine(holder, facts.owner) then
    return {taken = 0}
  end
  take(facts.lease, facts.owner, lease_life(facts))
  return {taken = holder and 2 or 1}
end
