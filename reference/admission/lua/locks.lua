-- The failure that reaches the limit locks; it is itself still answered.
local function locks(count)
  return count >= limits.rateFailures
end
