-- Returns the precedence of the checks for this kind of attempt; the lists are in rules.py.
local function order_of(facts)
  return limits.precedence[facts.kind]
end
