-- Replaces the presented token, which is for single use, by a fresh one without expiry.
local function rotate_token(facts, session)
  write('DEL', token_key(facts.reconnectionToken))
  session.reconnectionToken = facts.newToken
  store_token(session)
end
