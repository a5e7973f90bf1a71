-- Precedence of the checks, by the kind of attempt; the list stands in rules.py.
local function order_of(facts)
  return limits.precedence[facts.kind]
end
