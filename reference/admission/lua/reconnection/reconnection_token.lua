-- Finds the session of the presented token. Only a token that exists but is bound to something else counts as
-- a mismatch in the security log.
local function reconnection_token(facts)
  local record = token_record(facts)
  if not record then
    return token_refusal(facts, 'rapid_token_failures')
  end
  if not token_fits(facts, record) then
    return token_refusal(facts, 'mismatched_reconnect')
  end
  local session = session_by_id(record.sessionId)
  if not session or not resumable(facts, session) then
    return token_refusal(facts, 'rapid_token_failures')
  end
  facts.session = session
end
