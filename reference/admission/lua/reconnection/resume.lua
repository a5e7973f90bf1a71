-- Gives the session back to its client under the same id, in its old slot and without a look at the capacity.
local function resume(facts)
  local session = facts.session
  journal(facts, {kind = 'resume', sessionId = session.sessionId, state = session.state,
    graceExpiresAt = session.graceExpiresAt, token = facts.reconnectionToken,
    tokenExpiresAt = token_record(facts).expiresAt})
  cancel_grace(session)
  session.state = 'active'
  session.graceExpiresAt = nil
  session.socket = nil
  session.unclaimed = nil
  rotate_token(facts, session)
  touch(session, milliseconds(facts))
  local verdict = success(facts, session)
  verdict.reconnected = true
  return verdict
end
