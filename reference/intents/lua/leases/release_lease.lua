local function release_lease(facts)
  return {released = release(facts.lease, facts.owner)}
end
