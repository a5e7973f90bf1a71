-- The old socket has to be closed first. The node does that and comes back with its name.
local function old_socket(facts)
  local socket = facts.session.socket
  if socket and socket ~= facts.evicted then
    return {outcome = 'occupied', socket = socket}
  end
end
