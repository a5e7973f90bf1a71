-- Puts a live socket right after Redis was away. Writes its heartbeat again, and registers a session that Redis
-- has lost again, unless its end is known, the character plays elsewhere or the slot is gone.
local function restore(facts)
  local session = session_by_id(facts.session.sessionId)
  local now_ms = milliseconds(facts)
  if session then
    local mine = session.socket == facts.session.socket
    if mine then
      touch(session, now_ms)
    end
    return {kept = mine, taken = not mine}
  end
  local ended = load(key('ended', facts.session.sessionId))
  if not may_come_back(facts.session, ended) then
    return {kept = false, ended = ended and ended.reason}
  end
  local entry = entry_of(facts.session.characterId)
  if entry then
    remove_entry(entry)
  end
  add_session(facts.session, now_ms)
  return {kept = true}
end
