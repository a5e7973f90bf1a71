-- Tells whether this socket still holds the session. The close handler of a socket that was replaced or taken
-- over must change nothing.
local function holds(facts, session)
  return session ~= nil and session.state == 'active' and session.socket == facts.socket
end
