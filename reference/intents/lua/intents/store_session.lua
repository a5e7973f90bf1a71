-- Creates the session record (3.1 step 4).
local function store_session(facts)
  facts.session.state = first_state()
  facts.session.reason = 'R_NONE'
  facts.session.createdAtMs = whole(milliseconds(facts))
  change_session(facts.session.sessionId, facts.session, facts)
end
