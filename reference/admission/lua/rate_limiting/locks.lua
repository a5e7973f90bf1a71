-- Tells whether this failure sets the lock. It is itself still answered with its own reason.
local function locks(count)
  return count >= limits.rateFailures
end
