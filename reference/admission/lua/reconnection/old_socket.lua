-- Answers `occupied` while the session has a socket. The node closes that socket and asks again with its name in
-- `evicted`, so that two sockets are never attached at once.
local function old_socket(facts)
  local socket = facts.session.socket
  if socket and socket ~= facts.evicted then
    return {outcome = 'occupied', socket = socket}
  end
end
