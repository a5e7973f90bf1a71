local function free_slot(facts)
  if not may_enter(facts) then
    return nil
  end
  local session = new_session(facts)
  journal(facts, {kind = 'admission', moved = leave_other_queue(facts)})
  add_session(session, milliseconds(facts))
  return success(facts, session)
end
