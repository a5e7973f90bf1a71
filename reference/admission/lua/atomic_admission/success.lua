local function success(facts, session)
  return allowance(facts, {outcome = 'success', sessionId = session.sessionId,
    reconnectionToken = session.reconnectionToken}, used_up(facts))
end
