local function queued(facts, position, depth)
  return allowance(facts, {outcome = 'queued', position = position, depth = depth}, used_up(facts))
end
