-- One code for every cause, so that a refusal is no oracle; the count is for the log only.
local function token_refusal(facts, kind)
  return refuse(facts, 'INVALID_RECONNECTION_TOKEN', {suspicious = kind, seen = watch_suspicious(facts, kind)})
end
