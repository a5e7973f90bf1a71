-- Writes the token record with its bindings. It has no expiry while the socket lives; `start_grace` sets one.
local function store_token(session, expires_ms)
  local record = {sessionId = session.sessionId, characterId = session.characterId, userId = session.userId,
    instanceId = session.instanceId, expiresAt = expires_ms}
  local name = token_key(session.reconnectionToken)
  write('SET', name, cjson.encode(record))
  if expires_ms then
    write('PEXPIREAT', name, expires_ms)
  end
end
