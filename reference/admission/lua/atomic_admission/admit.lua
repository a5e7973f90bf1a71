-- Makes the session of an attempt that found a free slot. The character leaves every queue, because no
-- character may have a session and a place in line.
local function admit(facts)
  local session = new_session(facts)
  journal(facts, {kind = 'admission', moved = leave_other_queue(facts)})
  add_session(session, milliseconds(facts))
  return success(facts, session)
end
