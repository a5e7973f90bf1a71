-- Returns which of these sessions are to be stopped, and which another process has ended.
local function look_at(facts)
  local stop, ended = {}, {}
  for _, id in ipairs(facts.sessionIds) do
    local seen = redis.call('HMGET', session_key(id), 'state', 'stopRequestedAtMs')
    if not seen[1] or is_terminal(seen[1]) then
      ended[#ended + 1] = id
    elseif seen[2] then
      stop[#stop + 1] = id
    end
  end
  return {stop = stop, ended = ended}
end
