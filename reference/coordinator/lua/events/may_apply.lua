-- Tells whether a status report counts: one that can be read, newer than the last, of a job that has not ended.
local function may_apply(entry, status, last)
  return entry.status ~= '' and not is_terminal(status) and is_newer(entry.id, last)
end
