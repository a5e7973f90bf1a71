-- Writes a state with its reason. The life of a taken session is written in the same step, because a mapping binds
-- only while it lasts; the mapping of an ended one goes in the same step too.
local function set_state(session, facts)
  local fields = facts.fields or {}
  fields.state, fields.reason, fields.reasonDetail = facts.to, facts.reason, facts.detail
  if facts.to == 'STARTING' then
    fields.leaseExpiresAtMs = whole(milliseconds(facts) + limits.leaseTtlMs)
    write('SADD', limits.running, session.sessionId)
  end
  change_session(session.sessionId, fields, facts)
  if is_terminal(facts.to) then
    write('SREM', limits.running, session.sessionId)
    drop_mapping(session)
  end
end
