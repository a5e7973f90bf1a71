local function token_key(token)
  return key('session:reconnect', token)
end
