-- Single use: the presented token goes, a fresh one with a fresh life takes its place.
local function rotate_token(facts, session)
  write('DEL', token_key(facts.reconnectionToken))
  session.reconnectionToken = facts.newToken
  store_token(session)
end
