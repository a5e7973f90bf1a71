-- Returns the due time after this one. Missed ones are made up for one by one, but not more than a hundred of them.
local function next_run(due, interval, at)
  local missed = math.floor((at - due) / interval)
  return due + interval * math.max(1, missed - 100)
end
