-- Writes the record, marker, slot, token and first heartbeat of a session, all in one run.
local function add_session(session, now_ms)
  write('SET', marker_key(session.characterId, session.instanceId), session.sessionId)
  write('SADD', slots_key(session.instanceId), session.sessionId)
  write('SADD', limits.prefix .. 'instances', session.instanceId)
  store_token(session)
  touch(session, now_ms)
end
