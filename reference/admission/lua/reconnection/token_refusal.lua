-- Refuses with one code for every cause, so that the answer does not tell which tokens exist. The count is for
-- the log only.
local function token_refusal(facts, kind)
  return refuse(facts, 'INVALID_RECONNECTION_TOKEN', {suspicious = kind, seen = watch_suspicious(facts, kind)})
end
