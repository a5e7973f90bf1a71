-- Names the failures of a user, whatever the character, instance or node.
local function window_key(facts)
  return key('ratelimit:window', facts.userId)
end
