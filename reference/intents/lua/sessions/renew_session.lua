-- Maintain (3.2 step 6): extends both leases, the life of the record and that of the mapping. Names the leases that are
-- lost; a session that another process has ended has lost everything.
local function renew_session(facts)
  local session = load_session(facts.sessionId)
  if not session or not is_running(session) then
    return {lost = facts.leases, ended = true}
  end
  local lost = {}
  for _, lease in ipairs(facts.leases) do
    if not renew(lease, facts.owner) then
      lost[#lost + 1] = lease
    end
  end
  if #lost == 0 then
    change_session(facts.sessionId, {leaseExpiresAtMs = whole(milliseconds(facts) + limits.leaseTtlMs)}, facts)
    keep_mapping(session)
  end
  return {lost = lost, ended = false}
end
