-- Removes session and entry only if this attempt made them: a later attempt may have made its own.
local function undo_admission(facts, before)
  local session = session_of(facts)
  local entry = entry_of(facts.characterId)
  if session and session.attemptId == facts.attemptId then
    end_session(session, 'undone', milliseconds(facts))
  end
  if entry and entry.attemptId == facts.attemptId then
    remove_entry(entry)
  end
  if before.moved then
    store_entry(before.moved.entry, before.moved.score)
  end
end
