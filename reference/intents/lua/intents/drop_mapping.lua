-- Deletes the mapping of a session, unless another session has it by now.
local function drop_mapping(session)
  local key = mapping_key(session.idemKey)
  if redis.call('GET', key) == session.sessionId then
    write('DEL', key)
  end
end
