local function queued(facts, position, depth)
  return allowance(facts, {outcome = 'queued', position = position, depth = depth}, failures(facts))
end
