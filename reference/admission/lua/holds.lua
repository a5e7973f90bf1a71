-- A close handler may only act for the session that its own socket still holds.
local function holds(facts, session)
  return session ~= nil and session.state == 'active' and session.socket == facts.socket
end
