-- Ends the old session of a confirmed replacement.
local function end_replaced(session, now_ms)
  end_session(session, 'replace', now_ms)
end
