-- Ends the sessions that no worker runs any more: all of them at the start of the only worker, and at other times those
-- whose life has run out. Touches no lease: those of a dead worker end by themselves or by the flush.
local function expire_sessions(facts)
  local ended = {}
  for _, id in ipairs(redis.call('SMEMBERS', limits.running)) do
    local session = load_session(id)
    if not session then
      write('SREM', limits.running, id)
    elseif facts.all or is_overdue(session, facts) then
      set_state(session, {to = 'FAILED', reason = 'R_LEASE_EXPIRED', detail = '', now = facts.now})
      ended[#ended + 1] = {sessionId = id, from = session.state}
    end
  end
  return {ended = ended}
end
