-- Puts the old session and its offer back, unless the new session has been replaced or has ended since.
local function undo_swap(facts, before)
  local session = session_of(facts)
  if not session or session.attemptId ~= facts.attemptId then
    return
  end
  local now_ms = milliseconds(facts)
  local offer_name = key('replacement', before.token)
  end_session(session, 'undone', now_ms)
  write('DEL', key('ended', before.session.sessionId))
  add_session(before.session, now_ms)
  write('SET', offer_name, cjson.encode(before.offer))
  write('PEXPIREAT', offer_name, before.offerExpiresAt)
end
