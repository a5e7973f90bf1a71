-- Leaves a running session alone and refuses. The owner on the same instance gets an offer to replace it.
local function existing_session(facts)
  local session = session_of(facts)
  if not session then
    return nil
  end
  told(session.attemptId)
  local verdict = refuse(facts, 'ALREADY_IN_SESSION')
  if offers_replacement(facts, session) then
    verdict.replacementToken = offer_replacement(facts, session)
  end
  return verdict
end
